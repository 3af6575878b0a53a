import { fromPromise } from 'xstate';
import { type RestoredState, xdsSourceMachine } from '../../../machines/discovery/config/xds-source.machine.ts';
import { type SourceStreamOptions, sourceStream } from './xds/source-stream.ts';

export interface XdsSourceEffects {
  readonly restore: () => Promise<RestoredState>;
  readonly allowReading: () => void;
  readonly stream: SourceStreamOptions;
}

export function xdsSourceWithEffects({ restore, allowReading, stream }: XdsSourceEffects) {
  return xdsSourceMachine.provide({
    actors: { restoreState: fromPromise<RestoredState, undefined>(restore), stream: sourceStream(stream) },
    actions: { allowReading },
  });
}
