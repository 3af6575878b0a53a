import type { Steps } from '../../runtime/turns.ts';
import { type Config, configKeyText } from '../config/config.ts';

export function* withPreviousIdentity(
  objects: Iterable<Config>,
  previous: ReadonlyMap<string, Config>,
): Steps<ReadonlyMap<string, Config>> {
  const objectsByKey = new Map<string, Config>();
  for (const object of objects) {
    const key = configKeyText(object);
    const previousObject = previous.get(key);
    objectsByKey.set(
      key,
      previousObject !== undefined && areConfigsEqual(previousObject, object) ? previousObject : object,
    );
    yield;
  }
  return objectsByKey;
}

function areConfigsEqual(a: Config, b: Config): boolean {
  return (
    a.resourceVersion === b.resourceVersion &&
    a.creationTimestamp === b.creationTimestamp &&
    a.source?.file === b.source?.file &&
    a.source?.line === b.source?.line
  );
}
