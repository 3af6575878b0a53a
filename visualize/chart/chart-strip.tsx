import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { chainActors, chainAnchor } from '../model/causal-chain.ts';
import { place, recording } from '../model/place.ts';
import { actorOf, stateText } from '../model/recording/words.ts';
import { moreText } from '../parts/more.ts';
import { shownActor } from './chart-current.ts';
import { type ChartGroup, countsByState } from './chart-groups.ts';

interface StripProps {
  groups: readonly ChartGroup[];
  omittedActors: number;
  showsAllActors: Signal<boolean>;
  show: (actor: string) => void;
}

export function ChartStrip({ groups, omittedActors, showsAllActors: showsAll, show }: StripProps): JSX.Element {
  const record = recording.value?.recordAt(place.value);
  const movedActor = record === undefined ? undefined : actorOf(record);
  return (
    <nav class="chart-strip" aria-label="Actors with charts">
      <button
        type="button"
        class="chart-all"
        aria-pressed={showsAll.value}
        onClick={() => (showsAll.value = !showsAll.value)}
      >
        All charts
      </button>
      {groups.map((group) => (
        <Chip key={group.name} group={group} moved={movedActor} showsAllActors={showsAll} show={show} />
      ))}
      {omittedActors > 0 && (
        <span class="muted chart-more">{moreText(omittedActors, 'select one in the list of actors')}</span>
      )}
    </nav>
  );
}

function Chip({
  group,
  moved,
  showsAllActors,
  show,
}: Omit<StripProps, 'groups' | 'omittedActors'> & { group: ChartGroup; moved: string | undefined }): JSX.Element {
  const { name, actors, isShared } = group;
  const isShown = !showsAllActors.value && actors.some(({ actor }) => actor === shownActor.value);
  const isInShownChain = chainAnchor.value !== undefined && actors.some(({ actor }) => chainActors.value.has(actor));
  const isMovedActor = actors.some(({ actor }) => actor === moved);
  const openChart = (): void => {
    if (isShared) showsAllActors.value = true;
    else show(actors[0]!.actor);
  };
  return (
    <button
      type="button"
      class={`chart-chip${isMovedActor ? ' moved' : ''}${isInShownChain ? ' story' : ''}`}
      aria-current={isShown ? 'true' : undefined}
      data-actor={name}
      onClick={openChart}
    >
      <span class="chart-chip-name">{isShared ? `${name} × ${actors.length}` : name}</span>
      <span class="chart-chip-state">{isShared ? frequentStatesText(group) : stateText(actors[0]!.state) || '…'}</span>
    </button>
  );
}

/** Returns text such as `streaming 480, draining 32`, without parent states. */
function frequentStatesText({ actors }: ChartGroup): string {
  const leaves = new Set(actors.map(({ state }) => state));
  const counts = countsByState(actors);
  return [...new Set([...leaves].flatMap((state) => (state === '' ? [] : state.split(' | '))))]
    .sort((a, b) => counts.get(b)! - counts.get(a)!)
    .slice(0, 3)
    .map((leaf) => `${stateText(leaf)} ${counts.get(leaf)}`)
    .join(', ');
}
