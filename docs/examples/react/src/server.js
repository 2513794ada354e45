// Where the sessions are, and how they are asked for. Address and token come behind the # of the address: they never leave the browser.

/** What stands behind the #: `server`, `token`, and the `session` that is shown. */
export function place() {
  const params = new URLSearchParams(window.location.hash.slice(1));
  return {
    server: (params.get('server') ?? 'http://127.0.0.1:4747').replace(/\/$/, ''),
    token: params.get('token') ?? '',
    session: params.get('session') ?? '',
  };
}

/** An address of this app that shows something else. */
export function link(change) {
  return '#' + new URLSearchParams({ ...place(), ...change });
}

export function headers() {
  return { Authorization: `Bearer ${place().token}` };
}

/** Asks the server; an error says what it said. */
export async function ask(path) {
  const response = await fetch(place().server + path, { headers: headers() });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error?.message ?? response.statusText);
  return body;
}
