import { get } from 'node:http';

/** The kernel distributes connections among a port's processes; with this number each process receives one. */
const connections = 24;
/** Serving processes respond immediately. A child that has the port but does not serve yet only accepts connections. */
const responseLimitMs = 1_200;

/** Returns the distinct responses of the processes that serve this loopback port. */
export async function servingProcesses(port: number): Promise<string[]> {
  const responses = await Promise.all(Array.from({ length: connections }, () => request(port)));
  return [...new Set(responses)].filter((name) => name !== undefined).toSorted();
}

/** @returns `undefined` without a response */
function request(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(responseLimitMs);
    const httpRequest = get({ host: '127.0.0.1', port, path: '/', agent: false, signal }, async (response) => {
      const body = await response.setEncoding('utf8').toArray();
      resolve(body.join(''));
    });
    httpRequest.on('error', () => resolve(undefined));
  });
}
