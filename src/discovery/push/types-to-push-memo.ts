/** Which proxies the changes from one context to another concern, asked once for all of a shape. */

import { type ConfigKey, parseConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PushedType, type SeenProxy, typesToPush } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ChangesBetween } from './contexts/context-history.ts';

interface Asked {
  readonly now: PushContext;
  readonly before: PushContext;
  readonly changes: ChangesBetween;
  readonly keys: readonly ConfigKey[];
  /** Answers by the shape now and the shape before. */
  readonly answers: Map<ProxyShape, Map<ProxyShape, ReadonlySet<PushedType>>>;
}

/** Most proxies come from one context to one other; a few were left behind by earlier pushes. */
const maxAsked = 4;

export class TypesToPushMemo {
  /** Latest first. */
  #asked: readonly Asked[] = [];

  /** @param changesOf what changed in between: asked for when it is not known yet. */
  typesToPush(now: SeenProxy, before: SeenProxy, changesOf: () => ChangesBetween): ReadonlySet<PushedType> {
    const { changes, keys, answers } = this.#askedFor(now.context, before.context, changesOf);
    const ofShape = answers.get(now.shape) ?? new Map<ProxyShape, ReadonlySet<PushedType>>();
    answers.set(now.shape, ofShape);
    let types = ofShape.get(before.shape);
    if (types === undefined) {
      types = typesToPush({ forced: changes.forced, keys }, now, before);
      ofShape.set(before.shape, types);
    }
    return types;
  }

  #askedFor(now: PushContext, before: PushContext, changesOf: () => ChangesBetween): Asked {
    const known = this.#asked.find((asked) => asked.now === now && asked.before === before);
    if (known !== undefined) return known;
    const changes = changesOf();
    const keys = [...changes.changed].map(parseConfigKey);
    const asked: Asked = { now, before, changes, keys, answers: new Map() };
    // Answers about contexts that are past would keep them.
    const current = this.#asked.filter((other) => other.now === now);
    this.#asked = [asked, ...current.slice(0, maxAsked - 1)];
    return asked;
  }
}
