import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Generator } from '../../../networking/index.ts';

/** `subjects` are those whose resources differ from the resources of the common shape. */
export interface SharedLayer {
  readonly commonShape: ProxyShape;
  readonly subjects: ReadonlySet<string>;
}

/** `undefined` if the shape needs a separate list. */
export function sharedLayerOf(
  context: PushContext,
  shape: ProxyShape,
  { sharing }: Generator,
): SharedLayer | undefined {
  for (const commonShape of sharing?.commonShapes(shape, context) ?? []) {
    const subjects = sharing!.findDiffering(shape, commonShape, context);
    if (subjects !== undefined) return { commonShape, subjects };
  }
  return undefined;
}
