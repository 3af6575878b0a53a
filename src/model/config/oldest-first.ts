import { type Config, compareAge, compareText, configKeyText } from './config.ts';

export interface LimitShare {
  readonly config: Config;
  readonly cost: number;
}

/**
 * Selects the objects that a limit shared by several objects rejects. Older objects have priority, but a small item is accepted even after a larger
 * one was rejected.
 */
export function itemsBeyondLimit<Item extends LimitShare>(items: Iterable<Item>, maxCost: number): Item[] {
  const sortedItems = [...items];
  if (sortedItems.reduce((sum, { cost }) => sum + cost, 0) <= maxCost) return [];
  let sum = 0;
  return sortedItems.sort(compareAgeAndKey).filter(({ cost }) => {
    if (sum + cost > maxCost) return true;
    sum += cost;
    return false;
  });
}

function compareAgeAndKey(a: LimitShare, b: LimitShare): number {
  return a.config === b.config
    ? 0
    : compareAge(a.config, b.config) || compareText(configKeyText(a.config), configKeyText(b.config));
}
