/** The secrets of a workload with their real machines and effects, and a client that requests them like Envoy. */
import { join } from 'node:path';
import { expect } from 'vitest';
import { type AnyActorRef, fromCallback, sendTo, setup } from 'xstate';
import type {
  SecretsFailed,
  SecretsReady,
  TrustBundleReceived,
  TrustBundleServed,
} from '../../machines/agent/secrets-protocol.ts';
import { hashesOf } from '../../src/agent/identity/root-set.ts';
import { type IdentityOptions, identityOptions } from '../../src/agent/options/identity-options.ts';
import { secretsWithEffects, type WorkloadSecretsOptions } from '../../src/agent/secrets/secrets.effects.ts';
import { checkTrace } from '../../src/debugger/check/check.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { defaultProxyConfig } from '../../src/model/mesh/proxy-config.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { FileTurns } from '../../src/runtime/files/file-turns.ts';
import { OptionErrors } from '../../src/runtime/option-errors.ts';
import { createLogger } from '../../src/runtime/output/log.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { eventually } from './eventually.ts';
import { SecretClient } from './secret-client.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences')).filter(({ file }) =>
  /\/secrets?(-files)?\.mmd$/.test(file),
);

export interface StartedSecrets {
  readonly records: readonly TraceRecord[];
  events(type: string): Record<string, unknown>[];
  /** Simulates roots that the xDS proxy receives. */
  sendRoots(hash: string, roots: readonly string[], tainted?: readonly string[]): void;
  client(method?: string): Promise<SecretClient>;
}

const cleanups: (() => unknown)[] = [];
const traces: TraceRecord[][] = [];

/** Stops everything. Fails unless the trace conforms to the diagrams and contains no key. */
export async function stopSecrets(): Promise<void> {
  for (const end of cleanups.splice(0).reverse()) end();
  for (const records of traces.splice(0)) {
    expect(checkTrace(diagrams, records).departures).toEqual([]);
    expect(JSON.stringify(records)).not.toContain('PRIVATE KEY');
  }
}

/** Options that an agent derives from its environment. */
export function secretsOf({ env }: { env: NodeJS.ProcessEnv }): Pick<WorkloadSecretsOptions, 'identity' | 'env'> {
  const errors = new OptionErrors();
  const identity = identityOptions({ config: defaultProxyConfig, env }, errors);
  errors.throwIfAny();
  return { identity, env };
}

/** An agent with only its secrets and a scripted xDS proxy. */
function agentWith(secrets: ReturnType<typeof secretsWithEffects>, settings: IdentityOptions['settings']) {
  return setup({
    types: { events: {} as SecretsReady | SecretsFailed | { type: 'test.tell'; event: TrustBundleReceived } },
    actors: {
      secrets,
      proxy: fromCallback<TrustBundleServed | TrustBundleReceived>(({ receive, system }) =>
        receive((event) => {
          if (event.type === 'trust-bundle.received') system.get('secrets').send(event);
        }),
      ),
    },
  }).createMachine({
    id: 'agent',
    invoke: [
      { id: 'secrets', src: 'secrets', systemId: 'secrets', input: settings },
      { id: 'xds-proxy', src: 'proxy', systemId: 'xds-proxy' },
    ],
    entry: sendTo('secrets', { type: 'secrets.start' }),
    on: {
      'secrets.ready': {},
      'secrets.failed': {},
      'test.tell': { actions: sendTo('xds-proxy', ({ event }) => event.event) },
    },
  });
}

type GivenSecrets = Pick<WorkloadSecretsOptions, 'identity' | 'env' | 'vault' | 'counts' | 'now'>;

export async function givenSecrets(secretOptions: GivenSecrets): Promise<StartedSecrets> {
  const startedSecrets = startSecrets(secretOptions);
  const { events } = startedSecrets;
  await eventually('an answer', () => events('secrets.ready').length + events('secrets.failed').length > 0);
  return startedSecrets;
}

export function startSecrets({ identity, env, ...secretOptions }: GivenSecrets): StartedSecrets {
  const log = createLogger({ outputLevel: 'default:none', write: () => {} });
  const logic = secretsWithEffects({
    identity,
    env,
    config: defaultProxyConfig,
    nodeId: 'sidecar~10.0.0.1~cart-0.shop~shop.svc.cluster.local',
    log,
    turns: new FileTurns(),
    ...secretOptions,
  });
  const recorder = createRecorder({ program: 'test' });
  const records: TraceRecord[] = [];
  recorder.observe((record) => records.push(record));
  traces.push(records);
  const agent: AnyActorRef = startRoot(agentWith(logic, identity.settings), {
    id: 'agent',
    input: undefined,
    recorder,
    onError: () => {},
  });
  cleanups.push(() => agent.stop());
  return {
    records,
    events: (type) =>
      records.flatMap((record) =>
        record.kind === 'event' && record.event.type === type ? [{ ...record.event } as Record<string, unknown>] : [],
      ),
    sendRoots: (hash, roots, tainted = []) =>
      agent.send({
        type: 'test.tell',
        event: { type: 'trust-bundle.received', hash, roots, members: hashesOf(roots), tainted },
      }),
    client: async (method) => {
      const client = await SecretClient.open(identity.settings.socket, method);
      cleanups.push(() => client.close());
      return client;
    },
  };
}
