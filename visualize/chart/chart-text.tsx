import type { JSX } from 'preact';
import { now, recording } from '../model/place.ts';
import { moreInWords } from '../parts/more.ts';
import { definitionOf, shownActor, shownSnapshot, sinceIndex } from './chart-current.ts';
import { type ChartGroup, countsByState } from './chart-groups.ts';
import { chartInWords } from './chart-lights.ts';

const maxStates = 20;

/** The charts as text for screen readers: state of each actor, its duration, and the next transitions. */
export function ChartText({ groups, leftOut }: { groups: readonly ChartGroup[]; leftOut: number }): JSX.Element {
  return (
    <div class="chart-text">
      <p aria-live="polite">{`${shownActor.value ?? 'no actor'}: ${shownSnapshot.value?.state ?? 'not active at this record'}`}</p>
      <ul aria-label="Actors and their states">
        {groups.map((group) => (
          <li key={group.name} data-actor={group.name}>
            {group.together ? countsInWords(group) : actorInWords(group)}
          </li>
        ))}
        {leftOut > 0 && <li>{moreInWords(leftOut, 'select one in the list of actors')}</li>}
      </ul>
    </div>
  );
}

function actorInWords({ actors, machine }: ChartGroup): string {
  const [actor] = actors;
  const index = sinceIndex(actor!);
  const since = index < 0 ? actor!.spawnedAt : recording.value!.timeAt(index);
  return chartInWords(definitionOf(machine), actor!, since, now.peek());
}

function countsInWords({ name, actors }: ChartGroup): string {
  const counts = [...countsByState(actors)];
  const told = counts.slice(0, maxStates).map(([state, count]) => `${count} in ${state}`);
  const more = counts.length > maxStates ? [moreInWords(counts.length - maxStates, '')] : [];
  return `${actors.length} ${name}: ${[...told, ...more].join(', ')}`;
}
