import { enqueueActions, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import { registrationsTimeline } from '../timeline.ts';
import { registrationMachine } from './registration.machine.ts';
import type { EntryKey, RegistrationReport, WorkloadReport } from './registration-protocol.ts';

export interface RegistrationsInput {
  /** Delay from the close of the last connection to the deletion of the entry (PILOT_WORKLOAD_ENTRY_GRACE_PERIOD). */
  graceMs: number;
}

interface RegistrationsContext extends RegistrationsInput {
  workloads: { entry: EntryKey; name: `registration-${number}` }[];
  started: number;
}

/** Interval of searches for entries of failed replicas. */
const orphanMs = 5_000;

/**
 * Workloads of WorkloadGroups that are, or were recently, connected to this replica. This replica writes their entries, whichever replica is elected.
 */
export const registrationsMachine = setup({
  types: {
    context: {} as RegistrationsContext,
    input: {} as RegistrationsInput,
    events: {} as WorkloadReport | RegistrationReport,
    children: {} as { workloads: 'watchWorkloads' } & Record<`registration-${number}`, 'registration'>,
  },
  actors: {
    watchWorkloads: callbackEffect<{ type: never }, undefined>('watchWorkloads'),
    registration: registrationMachine,
  },
  delays: { orphanInterval: orphanMs },
  actions: {
    /** Starts a registration when the workload connects for the first time. */
    forwardToRegistration: enqueueActions(({ context, enqueue }, report: WorkloadReport) => {
      const workload = context.workloads.find(({ entry }) => entry === report.entry);
      if (workload !== undefined) enqueue.sendTo(workload.name, report);
      else if (report.type === 'workload.connected') {
        const startedCount = context.started + 1;
        const name = `registration-${startedCount}` as const;
        enqueue.spawnChild('registration', { id: name, input: { entry: report.entry, graceMs: context.graceMs } });
        enqueue.assign({ started: startedCount, workloads: [...context.workloads, { entry: report.entry, name }] });
      }
    }),
    removeRegistration: enqueueActions(({ context, enqueue }, { entry }: { entry: EntryKey }) => {
      enqueue.assign({ workloads: context.workloads.filter((one) => one.entry !== entry) });
    }),
    releaseWorkload: (_, _params: { entry: EntryKey }) => {},
    closeConnections: (_, _params: { entry: EntryKey; reason: string }) => {},
    findOrphans: (_, _params: undefined) => {},
  },
}).createMachine({
  id: 'registrations',
  description: 'Workloads that register themselves.',
  meta: { timeline: registrationsTimeline },
  context: ({ input }) => ({ ...input, workloads: [], started: 0 }),
  invoke: { id: 'workloads', src: 'watchWorkloads' },
  initial: 'watching',
  states: {
    watching: {
      description: 'Each workload has an actor.',
      after: {
        orphanInterval: {
          description: 'The failure of a replica causes no event.',
          target: 'watching',
          reenter: true,
          actions: 'findOrphans',
        },
      },
      on: {
        'workload.connected': { actions: { type: 'forwardToRegistration', params: ({ event }) => event } },
        'workload.disconnected': { actions: { type: 'forwardToRegistration', params: ({ event }) => event } },
        'workload.evicted': { actions: { type: 'forwardToRegistration', params: ({ event }) => event } },
        'workload-health.reported': { actions: { type: 'forwardToRegistration', params: ({ event }) => event } },
        'entry.lost': { actions: { type: 'forwardToRegistration', params: ({ event }) => event } },
        'registration.failed': { description: 'Recorded only: the write is repeated.' },
        'registration.rejected': { actions: { type: 'closeConnections', params: ({ event }) => event } },
        'registration.ended': {
          actions: [
            { type: 'removeRegistration', params: ({ event }) => event },
            { type: 'releaseWorkload', params: ({ event }) => event },
          ],
        },
      },
    },
  },
});
