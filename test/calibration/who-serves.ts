import { get } from 'node:http';

/** The kernel deals connections out among the processes of a port: enough of them reach every one. */
const connections = 24;
/** They answer by themselves, and at once. A child that has the port but does not serve yet takes connections only. */
const answerLimitMs = 1_200;

/** The answers of those who take new connections at this port of loopback, each once. */
export async function whoServes(port: number): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: connections }, () => ask(port)));
  return [...new Set(answers)].filter((answer) => answer !== undefined).toSorted();
}

/** @returns undefined when nobody answers. */
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
