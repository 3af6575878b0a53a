/** For tests: a memory that forgets nothing. */
import { sameItems } from '../model/same-items.ts';
import type { Memory } from './memory.ts';

export function rememberAll(): Memory & { readonly made: string[] } {
  const kept = new Map<string, { inputs: readonly unknown[]; value: unknown }>();
  const made: string[] = [];
  return {
    made,
    recall: (type, key, inputs, make) => {
      const id = `${type} ${key}`;
      const known = kept.get(id);
      if (known !== undefined && sameItems(known.inputs, inputs)) return known.value as ReturnType<typeof make>;
      const value = make();
      kept.set(id, { inputs, value });
      made.push(id);
      return value;
    },
  };
}
