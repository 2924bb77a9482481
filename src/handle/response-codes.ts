// Handle System response codes (hdllib AbstractMessage) used by the proxy.

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
  serviceReferral: 302,
  prefixReferral: 303,
  invalidAdmin: 400,
  insufficientPermissions: 401,
  authenticationNeeded: 402,
  authenticationFailed: 403,
  sessionTimeout: 500,
  sessionFailed: 501,
} as const;

const ELSEWHERE: readonly (number | undefined)[] = [
  RESPONSE_CODE.notResponsible,
  RESPONSE_CODE.serviceReferral,
  RESPONSE_CODE.prefixReferral,
];

/** Whether the response says that a different server holds the handle: a foreign prefix, or a referral. */
export const isElsewhere = (responseCode: number | undefined): boolean => ELSEWHERE.includes(responseCode);
