/** Envoys that only do what a test specifies. */
import { type AnyActorRef, fromPromise } from 'xstate';
import type {
  DrainListenersOrder,
  PreparedEpoch,
  PrepareOrder,
  ProbeOrder,
  StartOrder,
} from '../../machines/agent/envoy/epoch.machine.ts';
import type { ProbeExplain, ProbeRun, ProcessSignal } from '../../machines/agent/protocol.ts';
import { type RunningEffect, reportEvent, scriptedCallback } from '../../src/debugger/explore/scripted-effect.ts';
import { StepNotPossible } from './driver.ts';
import { epochName, type Host, type HostKind, type HostPlan, waitForValue } from './host.ts';

interface EpochRun {
  epoch: number;
  baseId: number;
}

const baseIds = [7, 8];
/** Every effect responds in the next event loop iteration or the one after; a response may lead to another request. */
const limit = { turns: 50 };

export const scriptedHost: HostKind = { name: 'scripted effects', limit, open: async (plan) => openHost(plan) };

function openHost(plan: HostPlan): Host {
  const processes = new Map<string, AnyActorRef>();
  const probes = new Map<string, AnyActorRef>();
  const runningNames = new Set<string>();
  let finishPreparation = (): void => {};
  const mayPrepare = new Promise<void>((resolve) => {
    finishPreparation = resolve;
  });
  let drains: 'a response' | 'an error' | 'no response' = 'a response';
  let refuses = false;
  let repairable = true;
  let inFlight: number | undefined = 0;

  const probe = (name: string): Promise<AnyActorRef> =>
    waitForValue('probe of that epoch', () => probes.get(name), limit);
  const end = (
    name: string,
    processEnd: { code: number | null; signal: string | null; tookOverWithinMs?: number },
    refusedByParent = false,
  ): void => {
    const process = processes.get(name);
    if (process === undefined) throw new StepNotPossible('there is no process of that epoch');
    runningNames.delete(name);
    reportEvent(process, {
      type: 'process.exited',
      ...processEnd,
      lastOutput: '',
      refusedByParent,
      outOfMemory: false,
    });
  };
  const process = scriptedCallback<ProcessSignal, StartOrder>({
    start: ({ input, self }: RunningEffect<EpochRun>) => {
      const name = epochName(input, baseIds);
      processes.set(name, self);
      runningNames.add(name);
      // Like the operating system, responds later than the current iteration.
      queueMicrotask(() =>
        setImmediate(() => {
          if (!plan.spawns) return reportEvent(self, { type: 'process.failed', reason: 'spawn ENOENT' });
          reportEvent(self, { type: 'process.spawned', pid: 100, startedAtMs: 0 });
          if (refuses) {
            refuses = false;
            end(name, { code: 1, signal: null }, true);
          }
        }),
      );
    },
  });
  // Like an admin interface, responds later than the current iteration.
  const reportInitializing = (probe: AnyActorRef): void =>
    void setImmediate(() => reportEvent(probe, { type: 'probe.failed', reason: '503 INITIALIZING' }));
  const probing = scriptedCallback<ProbeRun | ProbeExplain, ProbeOrder>({
    start: ({ input, self }: RunningEffect<ProbeOrder>) => {
      probes.set(epochName(input, baseIds), self);
      if (input.isProbeRequested) reportInitializing(self);
    },
    receive: ({ self }, { type }) => {
      if (type === 'probe.run') reportInitializing(self);
    },
  });
  return {
    baseIds,
    adminPorts: { adminPort: 15_000, spareAdminPort: 15_001 },
    certificates: null,
    epochEffects: {
      process,
      probe: probing,
      prepare: fromPromise<PreparedEpoch, PrepareOrder>(async ({ input: { adminPort } }) => {
        await mayPrepare;
        if (plan.bootstrap === 'refused') throw new Error('no such field: bogus');
        if (plan.bootstrap === 'outdated') return { outdated: 'other certificates' };
        if (plan.bootstrap === 'unwritable') return { unwritable: 'read-only file system' };
        if (plan.bootstrap === 'unreachable') return { unreachable: 'nobody listens' };
        return { configFile: 'envoy-rev0.json', adminPort };
      }),
      drainListeners: fromPromise<void, DrainListenersOrder>(async () => {
        if (drains === 'no response') await new Promise(() => {});
        if (drains === 'an error') throw new Error('500');
      }),
    },
    supervisorEffects: {
      repair: fromPromise<void, { baseId: number }>(async () => {
        if (!repairable) throw new Error('its layout is not known');
      }),
    },
    shutdownEffects: {
      countRequests: fromPromise<number, { adminPort: number }>(async () => {
        if (inFlight === undefined) throw new Error('no answer');
        return inFlight;
      }),
    },
    prepare: () => finishPreparation(),
    live: async (name) => reportEvent(await probe(name), { type: 'probe.passed', timeToLiveMs: 300, unseenMs: 50 }),
    waits: async (name) => reportEvent(await probe(name), { type: 'probe.waiting', reason: '503 INITIALIZING' }),
    lacks: async (name) => reportEvent(await probe(name), { type: 'probe.incomplete', reason: 'LIVE without tls' }),
    holdBack: () => {},
    running: () => [...runningNames],
    end: (name, endKind) => {
      if (endKind === 'on request' || endKind === 'with code 0') return end(name, { code: 0, signal: null });
      if (endKind === 'killed') return end(name, { code: null, signal: 'SIGKILL' });
      const takeOver = endKind === 'after it took over' ? { tookOverWithinMs: 300 } : {};
      end(name, { code: null, signal: 'SIGSEGV', ...takeOver });
    },
    attachChild: () => {},
    drain: (_, meets) => {
      drains = meets;
    },
    refuseNext: (_, canBeRepaired) => {
      refuses = true;
      repairable = canBeRepaired;
    },
    requests: (_, active) => {
      inFlight = active;
    },
    close: async () => {},
  };
}
