import { workerData } from 'node:worker_threads';
import { type HelperData, runHelper } from '../../debugger/explore/two-explorers.ts';
import { explorePush, type PushExplorationOrder } from './explore-discovery.ts';

/** XState's development build warns about every event that is sent to a stopped actor. */
console.warn = () => {};

runHelper((order) => {
  const { bounds, options } = order as PushExplorationOrder;
  return explorePush(bounds, options).beginWorld();
}, workerData as HelperData);
