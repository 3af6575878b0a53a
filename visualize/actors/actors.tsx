import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { ownValue } from '../../src/runtime/json-object.ts';
import type { ActorSnapshot, RunningTimer } from '../../src/runtime/trace/trace.ts';
import { type ActorGroup, type ActorNode, actorRows, filterGroup, isGroup } from '../model/actor-tree.ts';
import { departed } from '../model/departed.ts';
import { choose, chosenActor, now, place, recording, state } from '../model/place.ts';
import { storyActors, storyAnchor } from '../model/story.ts';
import { durationInWords, regionsOf, stateInWords } from '../model/words.ts';
import { Icon } from '../parts/icon.tsx';
import { LargeButton } from '../parts/large-button.tsx';

/** An actor that came so lately is marked. */
const newForMs = 1_500;
/** Members of a group that are listed; more than that nobody reads, the filter finds them. */
const listed = 60;

const openGroups = signal<ReadonlySet<string>>(new Set());
const filters = signal<Readonly<Record<string, string>>>({});

/** Who lives at the place that is looked at, and in which state. */
export function Actors(): JSX.Element {
  const open = recording.value;
  const rows = actorRows(state.value?.actors ?? new Map());
  const gone = open === undefined ? [] : departed(open, place.value);
  return (
    <section class="pane actors" aria-labelledby="actors-heading">
      <header class="pane-head">
        <h2 id="actors-heading">Actors</h2>
        <span class="muted">{state.value?.actors.size ?? 0} alive</span>
        <span class="grow" />
        <LargeButton pane="actors" />
      </header>
      <div class="scroll">
        <ul class="actor-list">
          {rows.map((row) =>
            isGroup(row) ? (
              <Group key={`group ${row.name}`} group={row} />
            ) : (
              <Actor key={`${row.actor.actor} ${row.actor.spawned}`} node={row} />
            ),
          )}
          {gone.map(({ actor, status }) => (
            <li class="actor gone" key={`gone ${actor}`}>
              <span class="actor-name">{actor}</span>
              <span class="muted">{status === 'error' ? 'broke' : status === 'done' ? 'ended' : 'stopped'}</span>
            </li>
          ))}
        </ul>
        {rows.length === 0 && gone.length === 0 && open !== undefined && (
          <p class="empty">{place.value < 0 ? 'Nothing has happened yet.' : 'Nobody lives any more.'}</p>
        )}
      </div>
    </section>
  );
}

function Actor({ node: { actor, depth, effects } }: { readonly node: ActorNode }): JSX.Element {
  return (
    <li class="actor" style={{ '--depth': depth }} data-new={isNew(actor) || undefined}>
      <ActorButton actor={actor} />
      {(actor.timers ?? []).map((timer) => (
        <Timer key={`${timer.timer} ${timer.state}`} timer={timer} />
      ))}
      {effects.length > 0 && (
        <ul class="effects" aria-label={`Effects of ${actor.actor}`}>
          {effects.map((effect) => (
            <li key={effect} class="effect" title={`${actor.actor}/${effect}, an effect that works for ${actor.actor}`}>
              {effect}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function ActorButton({ actor }: { readonly actor: ActorSnapshot }): JSX.Element {
  const since = recording.value?.inStateSince(actor.actor, place.value);
  const chosen = chosenActor.value === actor.actor;
  return (
    <button
      type="button"
      class="actor-button"
      data-actor={actor.actor}
      data-state-name={actor.state}
      aria-pressed={chosen}
      onClick={() => choose(actor.actor)}
    >
      <span class="lamp" data-phase={recording.value?.lanes.phaseOf(actor)} />
      <span class="actor-name">
        {actor.actor}
        <StoryCount actors={[actor.actor]} />
      </span>
      <span class="actor-time" title="How long it has been in this state">
        {since === undefined ? '' : durationInWords(Math.max(0, now.value - since))}
      </span>
      <State of={actor} />
    </button>
  );
}

/** How many records of the whole story that is shown are about somebody, or about those that are folded here. */
function StoryCount({ actors }: { readonly actors: readonly string[] }): JSX.Element | null {
  if (storyAnchor.value === undefined) return null;
  const count = actors.reduce((sum, actor) => sum + (storyActors.value.get(actor) ?? 0), 0);
  if (count === 0) return null;
  return (
    <span class="story-count" title={`${count} records of the story`}>
      {' '}
      ◆ {count}
    </span>
  );
}

/** The innermost state says it; the states around it are told in small. */
function State({ of }: { readonly of: ActorSnapshot }): JSX.Element {
  if (of.state === '')
    return <span class="state-name muted">{of.machine === undefined ? 'an effect' : 'not begun'}</span>;
  return (
    <span class="state-name">
      {regionsOf(of.state).map((path) => (
        <span class="region" key={path.join('.')}>
          {path.slice(0, -1).map((outer) => (
            <span class="outer-state" key={outer}>
              {outer}
              <span class="step"> › </span>
            </span>
          ))}
          <span class="inner-state">{path.at(-1)}</span>
        </span>
      ))}
    </span>
  );
}

function Timer({ timer: { timer, ms, startedAt } }: { readonly timer: RunningTimer }): JSX.Element {
  const left = Math.max(0, startedAt + ms - now.value);
  return (
    <div
      class="actor-timer"
      data-timer={timer}
      title={`Timer ${timer}: ${durationInWords(left)} of ${durationInWords(ms)} left`}
    >
      <Icon name="timer" />
      <span class="timer-name">{timer}</span>
      <span class="timer-bar">
        <span style={{ transform: `scaleX(${ms === 0 ? 0 : left / ms})` }} />
      </span>
      <span class="timer-left">{durationInWords(left)}</span>
    </div>
  );
}

function Group({ group }: { readonly group: ActorGroup }): JSX.Element {
  const isOpen = openGroups.value.has(group.name);
  const chosen = group.actors.find(({ actor }) => actor === chosenActor.value);
  return (
    <li class="actor group" style={{ '--depth': group.depth }} data-group={group.name}>
      <button type="button" class="actor-button" aria-expanded={isOpen} onClick={() => toggle(group.name)}>
        <Icon name={isOpen ? 'opened' : 'closed'} />
        <span class="actor-name">
          {group.name}
          <StoryCount actors={group.actors.map(({ actor }) => actor)} />
        </span>
        <span class="badge">{group.actors.length}</span>
        <span class="state-name">
          {group.counts.map(({ state: name, n }) => (
            <span class="region" key={name}>
              <span class="count">{n}</span> {stateInWords(name) || 'not begun'}
            </span>
          ))}
        </span>
      </button>
      {isOpen && <Members group={group} />}
      {!isOpen && chosen !== undefined && <ActorButton actor={chosen} />}
    </li>
  );
}

function Members({ group }: { readonly group: ActorGroup }): JSX.Element {
  const filter = ownValue(filters.value, group.name) ?? '';
  const found = filterGroup(group, filter);
  return (
    <div class="members">
      <input
        type="search"
        aria-label={`Filter ${group.name} by number or state`}
        placeholder="number or state"
        value={filter}
        onInput={({ currentTarget }) => {
          filters.value = { ...filters.value, [group.name]: currentTarget.value };
        }}
      />
      <ul>
        {found.slice(0, listed).map((actor) => (
          <li key={`${actor.actor} ${actor.spawned}`}>
            <ActorButton actor={actor} />
          </li>
        ))}
      </ul>
      {found.length > listed && <p class="muted">… and {found.length - listed} more</p>}
      {found.length === 0 && <p class="muted">None of them.</p>}
    </div>
  );
}

function toggle(name: string): void {
  const next = new Set(openGroups.value);
  if (!next.delete(name)) next.add(name);
  openGroups.value = next;
}

function isNew({ spawnedAt, spawned }: ActorSnapshot): boolean {
  const first = recording.value?.seqAt(0) ?? 0;
  return spawned > first && spawned > 1 && now.value - spawnedAt < newForMs;
}
