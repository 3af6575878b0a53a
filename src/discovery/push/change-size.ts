import { parseConfigKey } from '../../model/config/config.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';

/** A service port has a cluster, listener or virtual host, whose cost is about that of this many values of an object. */
const valuesOfPort = 20;

/**
 * @param configs objects of the context; if absent, only services count
 * @returns at most `maxSize`
 */
export function changeSize(
  changedKeys: Iterable<string>,
  context: Pick<PushContext, 'servicesOf'>,
  configs: Pick<ConfigSnapshot, 'byKey'> | undefined,
  maxSize: number,
): number {
  let size = 0;
  for (const key of changedKeys) {
    const { kind, namespace, name } = parseConfigKey(key);
    if (kind === 'ServiceEntry')
      for (const { ports } of context.servicesOf(name, namespace)) size += valuesOfPort * ports.length;
    size += countValues(configs?.byKey.get(key)?.spec, maxSize - size);
    if (size >= maxSize) return maxSize;
  }
  return size;
}

function countValues(spec: unknown, maxValues: number): number {
  let count = 0;
  const unvisitedValues: unknown[] = [spec];
  while (unvisitedValues.length > 0 && count < maxValues) {
    const next = unvisitedValues.pop();
    if (typeof next !== 'object' || next === null) continue;
    const values = Array.isArray(next) ? next : Object.values(next);
    count += values.length;
    for (let index = 0; index < values.length && index < maxValues; index++) unvisitedValues.push(values[index]);
  }
  return Math.min(count, maxValues);
}
