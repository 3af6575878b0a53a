import type { JSX } from 'preact';
import { currentTime, recording } from '../model/place.ts';
import { moreText } from '../parts/more.ts';
import { definitionOf, shownActor, shownSnapshot, stateEntryIndex } from './chart-current.ts';
import { type ChartGroup, countsByState } from './chart-groups.ts';
import { chartText } from './chart-lights.ts';

const maxStates = 20;

/** The charts as text for screen readers. */
export function ChartText({
  groups,
  omittedActors,
}: {
  groups: readonly ChartGroup[];
  omittedActors: number;
}): JSX.Element {
  return (
    <div class="chart-text">
      <p aria-live="polite">{`${shownActor.value ?? 'no actor'}: ${shownSnapshot.value?.state ?? 'not active at this record'}`}</p>
      <ul aria-label="Actors and their states">
        {groups.map((group) => (
          <li key={group.name} data-actor={group.name}>
            {group.isShared ? countsText(group) : actorText(group)}
          </li>
        ))}
        {omittedActors > 0 && <li>{moreText(omittedActors, 'select one in the list of actors')}</li>}
      </ul>
    </div>
  );
}

function actorText({ actors, machine }: ChartGroup): string {
  const [actor] = actors;
  const index = stateEntryIndex(actor!);
  const stateEnteredAt = index < 0 ? actor!.spawnedAt : recording.value!.timeAt(index);
  return chartText(definitionOf(machine), actor!, stateEnteredAt, currentTime.peek());
}

function countsText({ name, actors }: ChartGroup): string {
  const counts = [...countsByState(actors)];
  const stateCounts = counts.slice(0, maxStates).map(([state, count]) => `${count} in ${state}`);
  const omittedText = counts.length > maxStates ? [moreText(counts.length - maxStates, '')] : [];
  return `${actors.length} ${name}: ${[...stateCounts, ...omittedText].join(', ')}`;
}
