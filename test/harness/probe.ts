import { readFileSync } from 'node:fs';
import { http1Client } from '../load/http1-client.ts';
import type { LoadTarget } from '../load/plan.ts';
import type { Outcome } from '../load/tally.ts';

export interface ProbeResult {
  readonly outcome: Outcome;
  /** Serial number of the server's certificate, for TLS. */
  readonly serialNumber: string | undefined;
}

/** Sends one request on a new connection. Never rejects. */
export async function probe(target: LoadTarget, { path = '/', timeoutMs = 2_000 } = {}): Promise<ProbeResult> {
  let serialNumber: string | undefined;
  const ca = target.caFile === undefined ? undefined : readFileSync(target.caFile, 'utf8');
  const client = http1Client(
    {
      ...target,
      ca,
      onConnected: (serial) => {
        serialNumber = serial;
      },
      onOvertaken: () => {},
    },
    { keepAlive: false },
  );
  const expectation = { timeoutMs, bodyEndsWith: undefined, drainDeadline: new AbortController().signal };
  const outcome = await client.send(path, expectation);
  client.close();
  return { outcome, serialNumber };
}
