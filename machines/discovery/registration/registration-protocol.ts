/** Events of workloads that register themselves. Nodes and entries stay in the effects. */
import type { CatalogueRow } from '../../catalogue-row.ts';

/** `namespace/name` of a WorkloadEntry. */
export type EntryKey = string;

export type WorkloadHealth = { healthy: boolean /** Reason; empty if healthy. */; message: string };

// ---- registrations/workloads → registrations → registration-N

/** The first connection of a workload was opened. */
export type WorkloadConnected = { type: 'workload.connected'; entry: EntryKey };
/** The last connection of a workload was closed. */
export type WorkloadDisconnected = { type: 'workload.disconnected'; entry: EntryKey };
/** The slot of this workload is given to a workload of a namespace with fewer slots. Its entry is deleted without a grace period. */
export type WorkloadEvicted = { type: 'workload.evicted'; entry: EntryKey };
/** The workload reported its health. */
export type WorkloadHealthReported = { type: 'workload-health.reported'; entry: EntryKey } & WorkloadHealth;
/** The entry of a connected workload was deleted, or states that the workload is disconnected: another process changed it. */
export type EntryLost = { type: 'entry.lost'; entry: EntryKey };

// ---- registration-N → registrations

/** A write was rejected, or its result is unknown; it is repeated. */
export type RegistrationFailed = { type: 'registration.failed'; entry: EntryKey; reason: string };
/** The workload cannot be registered, and its connections are closed. */
export type RegistrationRejected = { type: 'registration.rejected'; entry: EntryKey; reason: string };
/** The registration is finished: its entry was deleted, or belongs to another replica. */
export type RegistrationEnded = { type: 'registration.ended'; entry: EntryKey };

export type WorkloadReport =
  | WorkloadConnected
  | WorkloadDisconnected
  | WorkloadEvicted
  | WorkloadHealthReported
  | EntryLost;

export type RegistrationReport = RegistrationFailed | RegistrationRejected | RegistrationEnded;

const [registrations, one] = ['registrations', 'registration-N'] as const;

export const registrationCatalogue = [
  { type: 'spawn', from: 'discovery', to: registrations, diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: registrations, to: 'registrations/workloads', diagram: 'registrations', seeds: [] },
  {
    ...{ type: 'workload.connected', from: 'registrations/workloads', to: registrations },
    ...{ diagram: 'registrations', seeds: [] },
  },
  {
    ...{ type: 'workload.disconnected', from: 'registrations/workloads', to: registrations },
    ...{ diagram: 'registrations', seeds: [] },
  },
  {
    ...{ type: 'workload.evicted', from: 'registrations/workloads', to: registrations },
    ...{ diagram: 'registrations', seeds: [] },
  },
  {
    ...{ type: 'workload-health.reported', from: 'registrations/workloads', to: registrations },
    ...{ diagram: 'registrations', seeds: [] },
  },
  {
    ...{ type: 'entry.lost', from: 'registrations/workloads', to: registrations },
    ...{ diagram: 'registrations', seeds: [] },
  },
  { type: 'timer orphanInterval', from: registrations, to: registrations, diagram: 'registrations', seeds: [] },
  { type: 'spawn', from: registrations, to: one, diagram: 'registration', seeds: [] },
  { type: 'workload.connected', from: registrations, to: one, diagram: 'registration', seeds: [] },
  { type: 'workload.disconnected', from: registrations, to: one, diagram: 'registration', seeds: [] },
  { type: 'workload.evicted', from: registrations, to: one, diagram: 'registration', seeds: [] },
  { type: 'workload-health.reported', from: registrations, to: one, diagram: 'registration', seeds: [] },
  { type: 'entry.lost', from: registrations, to: one, diagram: 'registration', seeds: [] },
  { type: 'spawn', from: one, to: 'registration-N/writing', diagram: 'registration', seeds: [] },
  { type: 'timer healthInterval', from: one, to: one, diagram: 'registration', seeds: [] },
  { type: 'timer reconnectTime', from: one, to: one, diagram: 'registration', seeds: [] },
  { type: 'timer gracePeriod', from: one, to: one, diagram: 'registration', seeds: [] },
  { type: 'timer rejectionTime', from: one, to: one, diagram: 'registration', seeds: [] },
  { type: 'timer retryDelay', from: one, to: one, diagram: 'registration', seeds: [] },
  { type: 'registration.failed', from: one, to: registrations, diagram: 'registration', seeds: [] },
  { type: 'registration.rejected', from: one, to: registrations, diagram: 'registration', seeds: [] },
  { type: 'registration.ended', from: one, to: registrations, diagram: 'registration', seeds: [] },
] as const satisfies readonly CatalogueRow<'registrations' | 'registration' | 'bootstrap-detailed'>[];
