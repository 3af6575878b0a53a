/** Shapes whose resources are those of a common shape, with a few differences. */
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Generator } from '../../../networking/index.ts';

/** Whose resources a shape has, and the subjects of which it has its own. */
export interface Layer {
  readonly common: ProxyShape;
  readonly subjects: ReadonlySet<string>;
}

/** A shape whose resources are those of a common one, but for a few; undefined where it has a list of its own. */
export function layerOf(context: PushContext, shape: ProxyShape, { sharing }: Generator): Layer | undefined {
  for (const common of sharing?.commonShapes(shape, context) ?? []) {
    const subjects = sharing!.differing(shape, common, context);
    if (subjects !== undefined) return { common, subjects };
  }
  return undefined;
}
