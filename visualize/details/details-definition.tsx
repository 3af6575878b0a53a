import type { JSX } from 'preact';
import type { Statechart, StatechartTransition } from '../../src/runtime/trace/statechart.ts';
import { type Moment, missingDefinitionReason } from '../model/moment.ts';
import { moreText } from '../parts/more.ts';

const maxListed = 50;

export function Definition({ moment }: { readonly moment: Moment }): JSX.Element {
  const { machineId, machine, takenTransitions, describedStates } = moment;
  const reason = missingDefinitionReason(moment);
  return (
    <div data-part="definition">
      <h3 class="column-head">{machineId === undefined ? 'Definition' : `Machine ${machineId}`}</h3>
      {reason !== undefined && <p class="muted">{reason}</p>}
      {machine !== undefined && takenTransitions.length > 0 && (
        <ul class="taken" aria-label="Transitions taken">
          {takenTransitions.slice(0, maxListed).map((transition, i) => (
            <TakenTransition key={i} machine={machine} transition={transition} />
          ))}
          {takenTransitions.length > maxListed && (
            <li class="muted">{moreText(takenTransitions.length - maxListed, '')}</li>
          )}
        </ul>
      )}
      {describedStates.length > 0 && (
        <dl class="descriptions">
          {describedStates.slice(0, maxListed).map(({ path, description }) => (
            <div key={path}>
              <dt>{path === '' ? machine?.id : path.split('.').at(-1)}</dt>
              <dd>{description}</dd>
            </div>
          ))}
        </dl>
      )}
      {describedStates.length > maxListed && <p class="muted">{moreText(describedStates.length - maxListed, '')}</p>}
    </div>
  );
}

function TakenTransition({
  machine,
  transition,
}: {
  readonly machine: Statechart;
  readonly transition: StatechartTransition;
}): JSX.Element {
  const { kind, on, guard, actions, targets, source, description } = transition;
  const name = (number: number): string => machine.states[number]?.path.split('.').at(-1) || machine.id;
  return (
    <li>
      <p class="transition-name">
        <span class="muted">{name(source)}</span> <span class="trigger">{triggerText(kind, on)}</span>
        {guard !== undefined && <span class="guard"> [{guard}]</span>} <span class="step">→</span>{' '}
        {targets.length === 0 ? 'no state change' : targets.map(name).join(', ')}
      </p>
      {actions !== undefined && <p class="actions">actions: {actions.join(', ')}</p>}
      {description !== undefined && <p class="description">{description}</p>}
    </li>
  );
}

function triggerText(kind: StatechartTransition['kind'], eventType: string): string {
  switch (kind) {
    case 'event':
      return eventType;
    case 'timer':
      return `after ${eventType}`;
    case 'always':
      return 'always';
    case 'done':
      return eventType === '' ? 'when done' : `when ${eventType} is done`;
    case 'error':
      return `when ${eventType} fails`;
  }
}
