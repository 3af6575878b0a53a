import { type Message, MessageReader } from '../../src/debugger/check/message.ts';
import { sequenceMermaid } from '../../src/debugger/check/sequence-mermaid.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import type { ExportedRange } from './exported-range.ts';

export function rangeMermaid(recording: PageRecording, { first, last }: ExportedRange): string {
  const { header, deviations } = recording;
  const reader = new MessageReader([...recording.stateAt(first - 1).actors.values()]);
  const messages: Message[] = [];
  for (const record of recording.recordsIn(first, last)) {
    const message = reader.read(record);
    if (message !== undefined && !isInternal(message)) messages.push(message);
  }
  return sequenceMermaid({
    about: [
      `${header.program}, process ${header.pid}, started ${header.startedAt}`,
      `records ${recording.seqAt(first)} to ${recording.seqAt(last)}`,
    ],
    messages,
    deviations: deviations.filter(({ index }) => index >= first && index <= last).map(({ deviation }) => deviation),
  });
}

/** XState's internal messages repeat what `done` shows. */
function isInternal({ type }: Message): boolean {
  return type.startsWith('xstate.') && !type.startsWith('xstate.error.');
}
