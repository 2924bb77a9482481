// The response codes of the Handle System (hdllib AbstractMessage) that this service names.

export const RESPONSE_CODE = {
  success: 1,
  error: 2,
  serverBusy: 3,
  protocolError: 4,
  operationNotSupported: 5,
  serverReadOnly: 7,
  handleNotFound: 100,
  handleExists: 101,
  invalidHandle: 102,
  valuesNotFound: 200,
  valueExists: 201,
  invalidValue: 202,
  notResponsible: 301,
  invalidAdmin: 400,
  insufficientPermissions: 401,
  authenticationNeeded: 402,
  authenticationFailed: 403,
} as const;
