import { fromCallback, fromPromise } from 'xstate';
import { discoveryMachine, type Preparation } from '../../machines/discovery/discovery.machine.ts';
import type { PreparedStage, StopSignal } from '../../machines/discovery/protocol.ts';
import { explainInOneLine } from '../runtime/errors.ts';
import type { StartStages } from './start-stages.ts';

type ProvidedActors = NonNullable<Parameters<typeof discoveryMachine.provide>[0]['actors']>;

export interface DiscoveryEffects {
  readonly signals: Pick<NodeJS.Process, 'on' | 'off'>;
  readonly stages: StartStages;
  readonly actors: Omit<ProvidedActors, 'signals' | 'prepare'>;
}

export function discoveryWithEffects({ signals, stages, actors }: DiscoveryEffects) {
  return discoveryMachine.provide({
    actors: { ...actors, signals: signalEffect(signals), prepare: prepareEffect(stages) },
  });
}

function prepareEffect(stages: StartStages) {
  return fromPromise<Preparation, { stage: PreparedStage }>(async ({ input: { stage } }) => {
    try {
      await stages[stage]();
      return {};
    } catch (error) {
      return { failure: explainInOneLine(error) };
    }
  });
}

function signalEffect(source: DiscoveryEffects['signals']) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    const handled: readonly StopSignal[] = ['SIGTERM', 'SIGINT'];
    const listener = (signal: NodeJS.Signals): void => {
      sendBack({ type: 'signal.received', signal });
    };
    for (const signal of handled) source.on(signal, listener);
    return () => {
      for (const signal of handled) source.off(signal, listener);
    };
  });
}
