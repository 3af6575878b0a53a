import { type Invariant, listOf } from './invariant.ts';

/** Envoy accepts one new process at a time, and one is enough, whatever its base ID. */
export const oneNotLive: Invariant = {
  name: 'never two epochs that are not live',
  onSpawn({ epoch }, { host }) {
    const otherStarts = host.processes.filter((process) => !process.isLive && !process.isUnkillable);
    return otherStarts.length === 0 ? undefined : `epoch ${epoch} is started while ${listOf(otherStarts)} is not live`;
  },
};

/** An Envoy two epochs after its predecessor aborts and leaves the INITIALIZING bit set. */
export const noGap: Invariant = {
  name: 'never an epoch gap',
  onSpawn({ epoch, baseId }, { host }) {
    const processesOfBaseId = host.processes.filter((process) => process.baseId === baseId);
    const hasParent = epoch === 0 || processesOfBaseId.some((process) => process.epoch === epoch - 1);
    return hasParent
      ? undefined
      : `epoch ${epoch} is started without its predecessor; running: ${listOf(processesOfBaseId)}`;
  },
};

/** Another epoch 0 would unlink the shared memory of running Envoys. */
export const noSecondEpochZero: Invariant = {
  name: 'never epoch 0 beside another epoch',
  onSpawn({ epoch, baseId }, { host }) {
    const processesOfBaseId = host.processes.filter((process) => process.baseId === baseId);
    return epoch !== 0 || processesOfBaseId.length === 0
      ? undefined
      : `epoch 0 is started while ${listOf(processesOfBaseId)} runs`;
  },
};

/** A start while the grandparent drains cuts that drain short (fact 5). */
export const noDrainCutByStart: Invariant = {
  name: 'never a drain cut short by a start',
  onSpawn({ epoch, baseId }, { host }) {
    const drainingProcess = host.processes.find(
      (process) => process.baseId === baseId && process.epoch === epoch - 2 && host.isDraining(process),
    );
    return drainingProcess === undefined
      ? undefined
      : `epoch ${epoch} is started while epoch ${drainingProcess.label} drains`;
  },
};

/** Each process costs 65 MB, and Envoy has names only for a parent and its child per base ID (fact 5). */
export const fewProcesses: Invariant = {
  name: 'never more than three processes, nor more than two of one base id',
  afterChoice({ host }) {
    const processes = host.processes.filter(({ isUnkillable }) => !isUnkillable);
    const countForBaseId = (baseId: number): number => processes.filter((process) => process.baseId === baseId).length;
    const hasTooMany = processes.length > 3 || processes.some(({ baseId }) => countForBaseId(baseId) > 2);
    return hasTooMany ? `running: ${listOf(processes)}` : undefined;
  },
};
