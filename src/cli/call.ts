// How a command asks a running proxy.
import { Failure } from './exit.js';

/** Where the admin listener is. */
export interface Admin {
  admin: string;
}

/** @throws Failure when the proxy does not answer, or refuses */
export async function callAdmin({ admin }: Admin, path: string, body?: object): Promise<unknown> {
  const { ADMIN_TOKEN: token } = process.env;
  const answer = await reach(`${admin}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(token !== undefined && token !== '' && { Authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Failure(`${path} answers ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

/** @throws Failure that says which address gave no answer, and why */
export async function reach(url: string, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw new Failure(`${url} cannot be reached: ${reasonOf(error)}`);
  }
}

/** `fetch` says only that it failed; why is one or two errors further in. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : reasonOf(error.cause);
}
