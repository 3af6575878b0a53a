import type { JSX } from 'preact';
import { now, recording } from '../model/place.ts';
import { definitionOf, shownActor, shownSnapshot, sinceIndex } from './chart-current.ts';
import { type ChartGroup, countsByState } from './chart-groups.ts';
import { chartInWords } from './chart-lights.ts';

/** The charts as text, for screen readers: where each actor stands, since when, what may be next. */
export function ChartText({ groups }: { groups: readonly ChartGroup[] }): JSX.Element {
  return (
    <div class="chart-text">
      <p aria-live="polite">{`${shownActor.value ?? 'nobody'}: ${shownSnapshot.value?.state ?? 'does not live here'}`}</p>
      <ul aria-label="Actors and their states">
        {groups.map((group) => (
          <li key={group.name} data-actor={group.name}>
            {group.together ? countsInWords(group) : actorInWords(group)}
          </li>
        ))}
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
  const counts = [...countsByState(actors)].map(([state, count]) => `${count} in ${state}`);
  return `${actors.length} ${name}: ${counts.join(', ')}`;
}
