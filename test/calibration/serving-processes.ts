import { get } from 'node:http';

/** The kernel distributes connections over the processes of a port; with this number every process receives one. */
const connections = 24;
/** The processes respond at once. A child that has the port but does not serve yet only accepts connections. */
const answerLimitMs = 1_200;

/** Distinct responses of the processes that serve this port of loopback. */
export async function whoServes(port: number): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: connections }, () => ask(port)));
  return [...new Set(answers)].filter((answer) => answer !== undefined).toSorted();
}

/** @returns `undefined` without a response */
function ask(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(answerLimitMs);
    const question = get({ host: '127.0.0.1', port, path: '/', agent: false, signal }, async (response) => {
      const body = await response.setEncoding('utf8').toArray();
      resolve(body.join(''));
    });
    question.on('error', () => resolve(undefined));
  });
}
