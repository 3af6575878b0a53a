import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Endpoint, LoadClient } from './client.ts';
import { http1Client } from './http1-client.ts';
import { http2Client } from './http2-client.ts';
import { type ClientKind, type CompleteClientPlan, completePlan, type LoadPlan } from './plan.ts';
import type { LoadReport } from './report.ts';
import { Tally } from './tally.ts';
import { tcpClient } from './tcp-client.ts';

/** A load run in this process. */
export interface GeneratedLoad {
  /** The results so far. */
  report(): LoadReport;
  /** Stops new requests, waits for those in flight, and reports. */
  stop(): Promise<LoadReport>;
  /** Resolves when the run has ended by its limits or was stopped. */
  readonly finished: Promise<LoadReport>;
}

/** Delay after a failure, so that an unavailable target does not get thousands of requests per second. */
const pauseAfterFailureMs = 20;

/** Starts the clients of a plan. Throws if the CA file cannot be read. */
export function generateLoad(plan: LoadPlan): GeneratedLoad {
  const tally = new Tally();
  const stopping = new AbortController();
  const drainDeadline = new AbortController();
  let remainingRequests = plan.maxRequests ?? Number.POSITIVE_INFINITY;

  const work = async (client: LoadClient, clientPlan: CompleteClientPlan): Promise<void> => {
    const expectation = {
      timeoutMs: plan.requestTimeoutMs ?? 30_000,
      bodyEndsWith: clientPlan.bodyEndsWith,
      drainDeadline: drainDeadline.signal,
    };
    while (!stopping.signal.aborted && remainingRequests > 0) {
      remainingRequests--;
      const outcome = await client.send(clientPlan.path, expectation);
      tally.ended(clientPlan.kind, outcome, clientPlan.name);
      const pauseMs = outcome.ok ? clientPlan.pauseMs : Math.max(clientPlan.pauseMs, pauseAfterFailureMs);
      if (pauseMs > 0) await pause(pauseMs, stopping.signal);
    }
  };

  const clients = openClients(plan, tally);
  const timer = setTimeout(() => stop(), plan.maxDurationMs);
  const finished = Promise.all(
    clients.flatMap(({ client, clientPlan }) =>
      Array.from({ length: clientPlan.kind === 'h2' ? clientPlan.streams : 1 }, () => work(client, clientPlan)),
    ),
  ).then(() => {
    clearTimeout(timer);
    stopping.abort();
    const report = tally.report();
    for (const { client } of clients) client.close();
    return report;
  });

  function stop(): Promise<LoadReport> {
    if (!stopping.signal.aborted) {
      stopping.abort();
      const deadline = setTimeout(() => drainDeadline.abort(), plan.drainTimeoutMs ?? 15_000);
      void finished.finally(() => clearTimeout(deadline));
    }
    return finished;
  }
  return { report: () => tally.report(), stop, finished };
}

function openClients(plan: LoadPlan, tally: Tally): { client: LoadClient; clientPlan: CompleteClientPlan }[] {
  return plan.clients.map(completePlan).flatMap((clientPlan) => {
    const { kind, count, target = plan.target } = clientPlan;
    const { host, port, authority, caFile } = target;
    const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
    const onConnected = (serialNumber?: string): void => tally.connected(kind, serialNumber);
    const endpoint = { host, port, authority, ca, onConnected, onOvertaken: () => tally.overtaken(kind) };
    return Array.from({ length: count }, () => ({
      clientPlan,
      client: clientOf(kind, endpoint),
    }));
  });
}

function clientOf(kind: ClientKind, endpoint: Endpoint): LoadClient {
  if (kind === 'h2') return http2Client(endpoint);
  if (kind === 'tcp') return tcpClient(endpoint);
  return http1Client(endpoint, { keepAlive: kind !== 'new' });
}

/** Sleeps until the duration or the run ends. */
async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  await sleep(durationMs, undefined, { signal }).catch(() => {});
}
