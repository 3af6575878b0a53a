/** The second thread of an exploration of the push path. */
import { workerData } from 'node:worker_threads';
import { type HelpNeeded, helpToExplore } from '../../debugger/explore/two-explorers.ts';
import { explorePush, type PushExplorationOrder } from './explore-discovery.ts';

/** XState's development build warns of every event that comes too late for an actor. */
console.warn = () => {};

helpToExplore((order) => {
  const { bounds, options } = order as PushExplorationOrder;
  return explorePush(bounds, options).begin();
}, workerData as HelpNeeded);
