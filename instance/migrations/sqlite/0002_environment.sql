-- Apple's environment of a registration, where its app has named one; a row that waits keeps it, too.

ALTER TABLE push_device_tokens ADD COLUMN environment TEXT;
ALTER TABLE push_outbox ADD COLUMN environment TEXT;
