import { fromCallback, fromPromise } from 'xstate';
import { informerMachine, type SetOrder } from '../../../machines/discovery/kubernetes/informer.machine.ts';
import type {
  CheckReport,
  ListReport,
  ResourceName,
  WatchStreamReport,
} from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';

export interface InformerRequests {
  watch(order: SetOrder, report: (event: WatchStreamReport) => void): () => void;
  list(order: SetOrder, report: (event: ListReport) => void): () => void;
  check(resource: ResourceName, report: (event: CheckReport) => void): () => void;
  handOver(resource: ResourceName, isAbsent: boolean): Promise<{ objects: number }>;
}

export function informerWithEffects(
  requestsOf: (resource: ResourceName) => InformerRequests,
  chart = informerMachine,
): typeof informerMachine {
  return chart.provide({
    actors: {
      watchKind: fromCallback<{ type: never }, SetOrder>(({ input, sendBack }) =>
        requestsOf(input.resource).watch(input, sendBack),
      ),
      listKind: fromCallback<{ type: never }, SetOrder>(({ input, sendBack }) =>
        requestsOf(input.resource).list(input, sendBack),
      ),
      checkHistory: fromCallback<{ type: never }, { resource: ResourceName }>(({ input, sendBack }) =>
        requestsOf(input.resource).check(input.resource, sendBack),
      ),
      handOver: fromPromise<{ objects: number }, { resource: ResourceName; absent: boolean }>(({ input }) =>
        requestsOf(input.resource).handOver(input.resource, input.absent),
      ),
    },
  });
}
