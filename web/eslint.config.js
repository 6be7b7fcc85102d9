import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["build/", "dist/", "page/dist/", "node_modules/"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // A missing case must fail the build: the `never` that is left over says which.
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: false }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "no-console": "error",
      "max-lines": ["error", 400],
      "max-lines-per-function": ["error", { max: 40, skipBlankLines: true, skipComments: true }],
      complexity: ["error", 12],
    },
  },
  {
    files: ["test/**/*.ts"],
    rules: {
      // `node:test` collects the promises of its tests itself.
      "@typescript-eslint/no-floating-promises": [
        "error",
        { allowForKnownSafeCalls: [{ from: "package", package: "node:test", name: ["test", "suite"] }] },
      ],
      "@typescript-eslint/no-non-null-assertion": "off",
      "max-lines-per-function": "off",
    },
  },
  { files: ["examples/**/*.ts"], rules: { "no-console": "off" } },
);
