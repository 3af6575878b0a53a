/** Records what a node reports about a Service's endpoints during a test, for the error message about failed requests. */
import type { ApiResource } from '../../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../../src/discovery/kubernetes/api-server.ts';
import type { RunningNode } from '../start-node.ts';

const slices: ApiResource = {
  ...{ group: 'discovery.k8s.io', version: 'v1' },
  ...{ kind: 'EndpointSlice', plural: 'endpointslices', namespaced: true },
};
const events: ApiResource = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true };
/** Longer than a test. */
const timeoutSeconds = 3_600;
const maxLines = 2_000;

interface Endpoint {
  readonly addresses: readonly string[];
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
}

/** Watches a Service's EndpointSlices, and the failed probes and stopped containers in its namespace. */
export class EndpointChanges {
  readonly lines: string[] = [];
  readonly #stopController = new AbortController();

  constructor({ cluster }: RunningNode, service: string) {
    const { admin, namespace } = cluster;
    const { signal } = this.#stopController;
    const watch = (resource: ApiResource, selection: object, describe: (object: KubernetesObject) => string): void => {
      admin
        .watch(
          resource,
          { namespace, timeoutSeconds, ...selection },
          ({ type, object }) => {
            if (type === 'BOOKMARK' || type === 'ERROR' || this.lines.length >= maxLines) return;
            const text = describe(object);
            // Startup probes fail each second while a pod starts.
            if (!text.includes('Startup probe')) this.lines.push(`${new Date().toISOString()} ${type} ${text}`);
          },
          signal,
        )
        .catch((error: unknown) => {
          if (!signal.aborted) this.lines.push(`${new Date().toISOString()} ${resource.plural}: ${error}`);
        });
    };
    watch(slices, { labelSelector: `kubernetes.io/service-name=${service}` }, endpointsText);
    for (const reason of ['Unhealthy', 'Killing']) {
      watch(events, { fieldSelector: `reason=${reason}` }, eventText);
    }
  }

  stop(): void {
    this.#stopController.abort();
  }
}

function endpointsText({ metadata, ...slice }: KubernetesObject): string {
  const { endpoints } = slice as { endpoints?: readonly Endpoint[] | null };
  const texts = (endpoints ?? []).map(({ addresses, conditions = {} }) => {
    const states = Object.entries(conditions).filter(([, isTrue]) => isTrue);
    return `${addresses.join()} ${states.map(([state]) => state).join('+') || 'no condition'}`;
  });
  return `${metadata.name}: ${texts.join(', ') || 'no endpoints'}`;
}

function eventText(event: KubernetesObject): string {
  const { involvedObject, message } = event as unknown as { involvedObject: { name: string }; message: string };
  return `${involvedObject.name}: ${message.slice(0, 200)}`;
}
