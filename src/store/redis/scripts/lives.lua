return { some({}) and 'lives' or 'gone' }
