/** Hypothetical gateways, one for each selector of Gateway objects. */
import * as E from 'fp-ts/lib/Either.js';
import type { Config } from '../../model/config/config.ts';
import type { Gateway } from '../../model/kinds/gateway/gateway.ts';
import { parseNode } from '../../model/node/parse-node.ts';
import { type ProxyShape, shapeOf } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';

/** Each gateway has exactly the labels of the selector. A real gateway may have more labels. */
export function* selectorShapes(
  gateways: readonly Config<Gateway>[],
  context: PushContext,
): Generator<ProxyShape | undefined> {
  const seenSelectors = new Set<string>();
  for (const { namespace, spec } of gateways) {
    const selector = spec.selector ?? {};
    const key = `${namespace} ${JSON.stringify(selector)}`;
    if (seenSelectors.has(key)) yield undefined;
    else {
      seenSelectors.add(key);
      const node = parseNode({
        id: `router~127.0.0.1~selected.${namespace}~${namespace}.svc.${context.domain}`,
        cluster: '',
        // The metadata is that of a node with workload certificates.
        metadata: { NAMESPACE: namespace, ISTIO_VERSION: '1.30.0', LABELS: selector },
      });
      yield E.isRight(node) ? shapeOf(node.right, context) : undefined;
    }
  }
}
