/**
 * Measures reviews of a pod at 50 per second over HTTPS while another process keeps a core busy, in CPU time without other load of the machine. The
 * response time is printed; on a machine with a free core both are nearly equal.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TlsOptions } from 'node:tls';
import * as E from 'fp-ts/lib/Either.js';
import { expect, onTestFinished, test } from 'vitest';
import { InjectionReviews } from '../../src/discovery/webhooks/injection-reviews.ts';
import { WebhookServer, WebhookServerCounts } from '../../src/discovery/webhooks/webhook-server.ts';
import { defaultInjectionConfig, defaultInjectionValues } from '../../src/injection/settings.ts';
import { defaultMeshConfig } from '../../src/model/mesh/mesh-config.ts';
import { defaultProxyConfig } from '../../src/model/mesh/proxy-config.ts';
import { silentLogger } from '../../src/runtime/output/log.ts';
import { createAuthority } from '../certs/authority.ts';
import { sized } from '../harness/size-of-run.ts';

const perSecond = 50;
const seconds = sized({ short: 10, full: 60 });
const limitMs = 20;
/** Number of requests until the code is optimized by the compiler. */
const warmUps = 200;

const authority = createAuthority();

async function servedPort(took: (ms: number) => void): Promise<number> {
  const { certificate, privateKey } = authority.issue(['127.0.0.1']);
  const tls: TlsOptions = { cert: certificate, key: privateKey, minVersion: 'TLSv1.2' };
  const values = { ...defaultInjectionValues, hub: 'example.com', tag: '1' };
  const reviews = new InjectionReviews({
    injector: () =>
      E.right({
        settings: { config: defaultInjectionConfig, values, revision: '' },
        mesh: defaultMeshConfig,
        proxyConfigFor: () => defaultProxyConfig,
      }),
    log: silentLogger,
    now: () => performance.now(),
  });
  const server = new WebhookServer({
    ...{ address: { host: '127.0.0.1', port: 0 }, counts: new WebhookServerCounts() },
    followTls: (onChange) => {
      onChange(tls);
      return () => {};
    },
    webhooks: {
      inject: (body, environment) => {
        const startUsage = process.threadCpuUsage();
        const review = reviews.review(body, environment);
        const { user, system } = process.threadCpuUsage(startUsage);
        took((user + system) / 1_000);
        return review;
      },
      validate: () => ({}),
    },
    onFailed: (error) => {
      throw error;
    },
    fault: (error) => {
      throw error;
    },
  });
  onTestFinished(() => server.close());
  return Number((await server.open()).split(':').at(-1));
}

/** A pod as a ReplicaSet creates it, with ten containers. */
const pod = {
  metadata: {
    generateName: 'web-7d9-',
    labels: { app: 'web', version: 'v1', 'pod-template-hash': '7d9' },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d9', controller: true }],
    managedFields: Array.from({ length: 10 }, () => ({ manager: 'm'.repeat(200) })),
  },
  spec: {
    containers: Array.from({ length: 5 }, (_, index) => ({
      name: `app-${index}`,
      image: 'web:1',
      ports: [{ name: 'http', containerPort: 8080 + index }],
      readinessProbe: { httpGet: { port: 'http', path: '/ready' } },
      env: Array.from({ length: 40 }, (_value, variable) => ({ name: `V${variable}`, value: 'x'.repeat(40) })),
    })),
  },
};

test(`99 % of ${perSecond} reviews per second take less than ${limitMs} ms of processor time while another core is busy`, {
  timeout: 180_000,
}, async () => {
  const processor: number[] = [];
  const port = await servedPort((ms) => void processor.push(ms));
  const busyProcess = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  onTestFinished(() => void busyProcess.kill('SIGKILL'));
  const agent = new Agent({ keepAlive: true, ca: authority.certificate });
  onTestFinished(() => agent.destroy());
  const body = JSON.stringify({
    ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
    request: { uid: 'u', namespace: 'shop', object: pod },
  });
  const review = async (): Promise<number> => {
    const startedAt = performance.now();
    const headers = { 'content-type': 'application/json' };
    const clientRequest = request({ host: '127.0.0.1', port, path: '/inject', method: 'POST', agent, headers });
    clientRequest.end(body);
    const [response] = await once(clientRequest, 'response');
    let text = '';
    for await (const chunk of response) text += chunk;
    expect(text).toContain('"patchType":"JSONPatch"');
    return performance.now() - startedAt;
  };
  for (let warmUp = 0; warmUp < warmUps; warmUp++) await review();
  const times: Promise<number>[] = [];
  const startedAt = performance.now();
  for (let index = 0; index < perSecond * seconds; index++) {
    await sleep(Math.max(0, startedAt + (index * 1_000) / perSecond - performance.now()));
    times.push(review());
  }
  const figures = (all: readonly number[]): { p50: number; p99: number } => {
    const sortedTimes = all.toSorted((a, b) => a - b);
    return {
      p50: sortedTimes[Math.floor(sortedTimes.length / 2)]!,
      p99: sortedTimes[Math.floor(sortedTimes.length * 0.99)]!,
    };
  };
  const [responseFigures, processorFigures] = [figures(await Promise.all(times)), figures(processor.slice(warmUps))];
  console.log(
    `until the response ${JSON.stringify(responseFigures)} ms, of the processor ${JSON.stringify(processorFigures)} ms`,
  );
  expect(processor).toHaveLength(warmUps + perSecond * seconds);
  expect(processorFigures.p99).toBeLessThan(limitMs);
});
