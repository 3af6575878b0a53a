import { useSignalEffect } from '@preact/signals';
import type { ComponentChildren, JSX, RefObject } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { ownValue } from '../../src/runtime/json-object.ts';
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { place, recording, session, state } from '../model/place.ts';
import { actorOf, stateText } from '../model/recording/words.ts';
import { moreText } from '../parts/more.ts';
import { currentTransitions, definitionOf } from './chart-current.ts';
import { missingPictureReason } from './chart-folding.ts';
import { type ChartGroup, countsByState } from './chart-groups.ts';
import { activeLeaves, activeStates } from './chart-lights.ts';
import { type DrawnStateBox, type Picture, pictureOf } from './chart-picture.ts';
import { ChartScene } from './chart-scene.ts';

/** Each drawn chart copies a picture. */
const maxDrawn = 60;
const maxOptions = 200;

interface OverviewProps {
  groups: readonly ChartGroup[];
  omittedActors: number;
  show: (actor: string) => void;
}

/** Many actors of one machine share a chart with counts. */
export function ChartOverview({ groups, omittedActors, show }: OverviewProps): JSX.Element {
  const record = recording.value?.recordAt(place.value);
  const movedActor = record === undefined ? undefined : actorOf(record);
  const omittedCount = groups.slice(maxDrawn).reduce((sum, { actors }) => sum + actors.length, omittedActors);
  return (
    <ul class="chart-overview" aria-label="All charts">
      {groups.slice(0, maxDrawn).map((group) => (
        <li
          key={group.name}
          data-actor={group.name}
          class={`chart-card${group.actors.some(({ actor }) => actor === movedActor) ? ' moved' : ''}`}
        >
          {group.isShared ? (
            <GroupCard group={group} show={show} />
          ) : (
            <ActorCard actor={group.actors[0]!} show={show} />
          )}
        </li>
      ))}
      {omittedCount > 0 && <li class="muted">{moreText(omittedCount, 'select one in the list of actors')}</li>}
    </ul>
  );
}

function ActorCard({ actor, show }: { actor: ActorSnapshot; show: (actor: string) => void }): JSX.Element {
  const text = ownValue(session.value?.charts, actor.machine!);
  return (
    <button type="button" class="chart-card-open" onClick={() => show(actor.actor)}>
      <span class="chart-card-name">{actor.actor}</span>
      <span class="chart-card-state">
        {stateText(actor.state) || recording.value?.missingStateReason(actor.machine)}
      </span>
      {text === undefined ? (
        <span class="chart-none">no diagram: {missingPictureReason(actor.machine!)}</span>
      ) : (
        <Miniature name={actor.actor} machine={actor.machine!} text={text} />
      )}
    </button>
  );
}

function Miniature({ name, machine, text }: { name: string; machine: string; text: string }): JSX.Element {
  const host = useRef<HTMLSpanElement>(null);
  const scene = useScene(host, text);
  useSignalEffect(() => {
    const actor = state.value?.actors.get(name);
    const chart = definitionOf(machine);
    if (actor !== undefined && chart !== undefined)
      scene.highlight(activeStates(chart, actor.state), currentTransitions(actor));
  });
  const leaves = activeLeaves(definitionOf(machine)!, state.value?.actors.get(name)?.state ?? '');
  return (
    <MiniChart picture={scene.picture} host={host}>
      {leaves.map((number) => (
        <span class="chart-mini-label" key={number} style={middleOf(scene.picture, number)}>
          {stateText(definitionOf(machine)!.states[number]!.path)}
        </span>
      ))}
    </MiniChart>
  );
}

function GroupCard({ group, show }: { group: ChartGroup; show: (actor: string) => void }): JSX.Element {
  const text = ownValue(session.value?.charts, group.machine);
  return (
    <div class="chart-card-open">
      <span class="chart-card-name">
        {group.name} × {group.actors.length}
      </span>
      <select
        aria-label={`Select one ${group.name}`}
        onChange={(event) => show((event.currentTarget as HTMLSelectElement).value)}
      >
        <option value="">select…</option>
        {group.actors.slice(0, maxOptions).map(({ actor, state: stateName }) => (
          <option key={actor} value={actor}>
            {actor}: {stateText(stateName)}
          </option>
        ))}
        {group.actors.length > maxOptions && (
          <option disabled>
            {moreText(group.actors.length - maxOptions, 'open the group in the list of actors and use its filter')}
          </option>
        )}
      </select>
      {text !== undefined && <HeatMap group={group} text={text} />}
    </div>
  );
}

function HeatMap({ group, text }: { group: ChartGroup; text: string }): JSX.Element {
  const host = useRef<HTMLSpanElement>(null);
  const scene = useScene(host, text);
  const chart = definitionOf(group.machine)!;
  const counts = countsByState(group.actors);
  const timeShares = chart.states.map(
    ({ path }, number) => [number, (counts.get(path) ?? 0) / group.actors.length] as const,
  );
  useLayoutEffect(() => scene.showCounts(new Map(timeShares)));
  return (
    <MiniChart picture={scene.picture} host={host} heat>
      {chart.states.map(({ path, type }, number) =>
        counts.has(path) && type !== 'compound' && type !== 'parallel' ? (
          <span class="chart-mini-label" key={path} style={middleOf(scene.picture, number)}>
            {stateText(path)} <b>{counts.get(path)}</b>
          </span>
        ) : null,
      )}
    </MiniChart>
  );
}

interface MiniProps {
  picture: Picture;
  host: RefObject<HTMLSpanElement | null>;
  heat?: boolean;
  children: ComponentChildren;
}

function MiniChart({ picture, host, heat, children }: MiniProps): JSX.Element {
  return (
    <span class={heat ? 'chart-mini heat' : 'chart-mini'}>
      <span class="chart-mini-picture" style={{ aspectRatio: `${picture.width} / ${picture.height}` }}>
        <span ref={host} />
        {children}
      </span>
    </span>
  );
}

function useScene(host: { readonly current: HTMLElement | null }, text: string): ChartScene {
  const scene = useMemo(() => new ChartScene(pictureOf(text)), [text]);
  useLayoutEffect(() => {
    scene.svg.setAttribute('preserveAspectRatio', 'xMidYMid meet');
    host.current!.replaceChildren(scene.svg);
  }, [scene, host]);
  return scene;
}

function middleOf({ width, height, boxes }: Picture, number: number): { left: string; top: string } {
  const box: DrawnStateBox = boxes.get(number) ?? { x: 0, y: 0, width: 0, height: 0 };
  return {
    left: `${(((box.x + box.width / 2) / width) * 100).toFixed(2)}%`,
    top: `${(((box.y + box.height / 2) / height) * 100).toFixed(2)}%`,
  };
}
