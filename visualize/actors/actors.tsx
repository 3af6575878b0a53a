import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { ownValue } from '../../src/runtime/json-object.ts';
import type { ActorSnapshot, RunningTimer } from '../../src/runtime/trace/trace.ts';
import { chainActors, chainAnchor } from '../model/causal-chain.ts';
import { chooseActor, chosenActor, currentTime, place, recording, state } from '../model/place.ts';
import {
  type ActorGroup,
  type ActorNode,
  type ActorTree,
  actorTree,
  filterGroup,
  findActors,
  isGroup,
} from '../model/recording/actor-tree.ts';
import { recentlyEnded } from '../model/recording/recently-ended.ts';
import { durationText, regionsOf, stateText } from '../model/recording/words.ts';
import { Icon } from '../parts/icon.tsx';
import { LargeButton } from '../parts/large-button.tsx';
import { moreText } from '../parts/more.ts';

const maxNewMs = 1_500;
/** Users find further members with the filter. */
const maxListedMembers = 60;
const maxMarks = 24;
const maxStates = 8;
/** Longer states are cut off and not split into path segments. */
const maxStateChars = 400;
const maxIndent = 6;

const filterText = signal('');
const openGroups = signal<ReadonlySet<string>>(new Set());
const filters = signal<Readonly<Record<string, string>>>({});

export function Actors(): JSX.Element {
  const openRecording = recording.value;
  const liveActors = state.value?.actors ?? new Map<string, ActorSnapshot>();
  const wholeTree = actorTree(liveActors);
  const isCut =
    wholeTree.omittedActors > 0 || wholeTree.rows.some((row) => !isGroup(row) && row.effects.length > maxMarks);
  // The filter applies only while the list is incomplete.
  const text = isCut ? filterText.value : '';
  const { rows, omittedActors } = text.trim() === '' ? wholeTree : findActors(liveActors.values(), text);
  const omittedActor = isCut ? chosenIfOmitted(rows, liveActors.get(chosenActor.value ?? '')) : undefined;
  const endedActors = openRecording === undefined ? [] : recentlyEnded(openRecording, place.value);
  return (
    <section class="pane actors" aria-labelledby="actors-heading">
      <header class="pane-head">
        <h2 id="actors-heading">Actors</h2>
        <span class="muted">{liveActors.size} active</span>
        <span class="grow" />
        <LargeButton pane="actors" />
      </header>
      {isCut && <Filter />}
      <div class="scroll">
        <ul class="actor-list">
          {rows.map((row) =>
            isGroup(row) ? (
              <Group key={`group ${row.name}`} group={row} />
            ) : (
              <Actor key={`${row.actor.actor} ${row.actor.spawned}`} node={row} />
            ),
          )}
          {omittedActor !== undefined && <Actor key="chosen" node={{ actor: omittedActor, depth: 0, effects: [] }} />}
          {endedActors.map(({ actor, status }) => (
            <li class="actor gone" key={`gone ${actor}`}>
              <span class="actor-name">{actor}</span>
              <span class="muted">{status === 'error' ? 'failed' : status}</span>
            </li>
          ))}
        </ul>
        {omittedActors > 0 && <p class="muted actors-more">{moreText(omittedActors, 'use the filter')}</p>}
        {rows.length === 0 && text !== '' && <p class="empty">No actor matches the filter.</p>}
        {liveActors.size === 0 && endedActors.length === 0 && openRecording !== undefined && (
          <p class="empty">{place.value < 0 ? 'No events yet.' : 'No active actors.'}</p>
        )}
      </div>
    </section>
  );
}

function chosenIfOmitted(
  actorRows: ActorTree['rows'],
  omittedActor: ActorSnapshot | undefined,
): ActorSnapshot | undefined {
  const isListed =
    omittedActor === undefined ||
    actorRows.some((row) => (isGroup(row) ? row.actors.includes(omittedActor) : row.actor === omittedActor));
  return isListed ? undefined : omittedActor;
}

function Filter(): JSX.Element {
  return (
    <div class="actors-filter">
      <input
        type="search"
        aria-label="Filter actors by name, state or machine"
        placeholder="name, state or machine"
        value={filterText.value}
        onInput={({ currentTarget }) => {
          filterText.value = currentTarget.value;
        }}
      />
    </div>
  );
}

function Actor({ node: { actor, depth, effects } }: { readonly node: ActorNode }): JSX.Element {
  const timers = actor.timers ?? [];
  return (
    <li
      class="actor"
      style={{ '--depth': Math.min(depth, maxIndent) }}
      data-new={isRecentlySpawned(actor) || undefined}
    >
      <ActorButton actor={actor} />
      {timers.slice(0, maxMarks).map((timer) => (
        <Timer key={`${timer.timer} ${timer.state}`} timer={timer} />
      ))}
      {timers.length > maxMarks && (
        <p class="muted actors-more">{moreText(timers.length - maxMarks, 'search for kind:timer-started')}</p>
      )}
      {effects.length > 0 && (
        <ul class="effects" aria-label={`Effects of ${actor.actor}`}>
          {effects.slice(0, maxMarks).map((effect) => (
            <li key={effect} class="effect" title={`${actor.actor}/${effect}, an effect of ${actor.actor}`}>
              {effect}
            </li>
          ))}
          {effects.length > maxMarks && <li class="muted">{moreText(effects.length - maxMarks, 'use the filter')}</li>}
        </ul>
      )}
    </li>
  );
}

function ActorButton({ actor }: { readonly actor: ActorSnapshot }): JSX.Element {
  const since = recording.value?.stateEnteredAt(actor.actor, place.value);
  const isChosen = chosenActor.value === actor.actor;
  return (
    <button
      type="button"
      class="actor-button"
      data-actor={actor.actor}
      data-state-name={actor.state}
      aria-pressed={isChosen}
      onClick={() => chooseActor(actor.actor)}
    >
      <span class="lamp" data-phase={recording.value?.lanes.phaseOf(actor)} />
      <span class="actor-name">
        {actor.actor}
        <ChainCount actors={[actor]} />
      </span>
      <span class="actor-time" title="Time in this state">
        {since === undefined ? '' : durationText(Math.max(0, currentTime.value - since))}
      </span>
      <State of={actor} />
    </button>
  );
}

function ChainCount({ actors }: { readonly actors: readonly ActorSnapshot[] }): JSX.Element | null {
  if (chainAnchor.value === undefined) return null;
  const count = actors.reduce((sum, { actor }) => sum + (chainActors.value.get(actor) ?? 0), 0);
  if (count === 0) return null;
  return (
    <span class="story-count" title={`${count} records of the causal chain`}>
      {' '}
      ◆ {count}
    </span>
  );
}

function State({ of: snapshot }: { readonly of: ActorSnapshot }): JSX.Element {
  if (snapshot.state === '')
    return <span class="state-name muted">{recording.value?.missingStateReason(snapshot.machine)}</span>;
  if (snapshot.state.length > maxStateChars)
    return <span class="state-name">{`${snapshot.state.slice(0, maxStateChars)}…`}</span>;
  return (
    <span class="state-name">
      {regionsOf(snapshot.state).map((path) => (
        <span class="region" key={path.join('.')}>
          {path.slice(0, -1).map((ancestor) => (
            <span class="outer-state" key={ancestor}>
              {ancestor}
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
  const remainingMs = Math.max(0, startedAt + ms - currentTime.value);
  return (
    <div
      class="actor-timer"
      data-timer={timer}
      title={`Timer ${timer}: ${durationText(remainingMs)} of ${durationText(ms)} left`}
    >
      <Icon name="timer" />
      <span class="timer-name">{timer}</span>
      <span class="timer-bar">
        <span style={{ transform: `scaleX(${ms === 0 ? 0 : remainingMs / ms})` }} />
      </span>
      <span class="timer-left">{durationText(remainingMs)}</span>
    </div>
  );
}

function Group({ group }: { readonly group: ActorGroup }): JSX.Element {
  const isOpen = openGroups.value.has(group.name);
  const chosenMember = group.actors.find(({ actor }) => actor === chosenActor.value);
  return (
    <li class="actor group" style={{ '--depth': Math.min(group.depth, maxIndent) }} data-group={group.name}>
      <button type="button" class="actor-button" aria-expanded={isOpen} onClick={() => toggle(group.name)}>
        <Icon name={isOpen ? 'opened' : 'closed'} />
        <span class="actor-name">
          {group.name}
          <ChainCount actors={group.actors} />
        </span>
        <span class="badge">{group.actors.length}</span>
        <span class="state-name">
          {group.counts.slice(0, maxStates).map(({ state: name, n }) => (
            <span class="region" key={name}>
              <span class="count">{n}</span>{' '}
              {stateText(name) || recording.value?.missingStateReason(group.actors[0]!.machine)}
            </span>
          ))}
          {group.counts.length > maxStates && (
            <span class="region muted">{moreText(group.counts.length - maxStates, 'open the group')}</span>
          )}
        </span>
      </button>
      {isOpen && <Members group={group} />}
      {!isOpen && chosenMember !== undefined && <ActorButton actor={chosenMember} />}
    </li>
  );
}

function Members({ group }: { readonly group: ActorGroup }): JSX.Element {
  const filter = ownValue(filters.value, group.name) ?? '';
  const matchingMembers = filterGroup(group, filter);
  const shownMembers = matchingMembers.slice(0, maxListedMembers);
  // Keeps the chosen actor in the list, whatever its position.
  const chosenMember = matchingMembers.slice(maxListedMembers).find(({ actor }) => actor === chosenActor.value);
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
        {[...shownMembers, ...(chosenMember === undefined ? [] : [chosenMember])].map((actor) => (
          <li key={`${actor.actor} ${actor.spawned}`}>
            <ActorButton actor={actor} />
          </li>
        ))}
      </ul>
      {matchingMembers.length > maxListedMembers && (
        <p class="muted">{moreText(matchingMembers.length - maxListedMembers, 'use the filter')}</p>
      )}
      {matchingMembers.length === 0 && <p class="muted">No match.</p>}
    </div>
  );
}

function toggle(name: string): void {
  const nextGroups = new Set(openGroups.value);
  if (!nextGroups.delete(name)) nextGroups.add(name);
  openGroups.value = nextGroups;
}

function isRecentlySpawned({ spawnedAt, spawned }: ActorSnapshot): boolean {
  const firstSeq = recording.value?.seqAt(0) ?? 0;
  return spawned > firstSeq && spawned > 1 && currentTime.value - spawnedAt < maxNewMs;
}
