// The documents in config/openapi, which config/openapi-documents.js converts in the build and in tests.
declare module '*.yaml' {
  const document: unknown;
  export default document;
}
