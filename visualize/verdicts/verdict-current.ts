/** What is said of the open trace, and which of it is about the place that is looked at. */
import { computed } from '@preact/signals';
import type { Verdict } from '../../src/debugger/verdicts/verdict.ts';
import { Verdicts } from '../../src/debugger/verdicts/verdicts.ts';
import { connection } from '../model/connection.ts';
import { place, recording, size } from '../model/place.ts';
import type { Recording } from '../model/recording.ts';
import { firstAfter } from '../model/sorted.ts';

const followers = new WeakMap<Recording, Verdicts>();
const none: readonly Verdict[] = [];

/** In the order of their records; with the end, where no more will come. */
export const verdicts = computed<readonly Verdict[]>(() => {
  const open = recording.value;
  if (open === undefined || size.value === 0 || connection.value.kind === 'opening') return none;
  const follower = followers.get(open) ?? new Verdicts(open);
  followers.set(open, follower);
  follower.grow();
  const isOver = connection.value.kind !== 'live' && connection.value.kind !== 'lost';
  return isOver ? [...follower.found, ...follower.atEnd()].sort((a, b) => a.index - b.index) : follower.found.slice();
});

/** Place in the list of the one that is said at the place: the last that was decided until then; -1 before the first. */
export const currentVerdict = computed(() => firstAfter(verdicts.value, ({ index }) => index > place.value) - 1);
