import { deviationsRule } from '../../src/debugger/findings/deviations.ts';
import type { Finding } from '../../src/debugger/findings/finding.ts';
import type { Session } from '../../src/debugger/page-data.ts';
import { findings } from '../findings/current-finding.ts';
import { currentAddress } from '../model/link.ts';
import { place, range, recording, session } from '../model/place.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { shownColumns, shownRows } from '../sequence/sequence-current.ts';
import { copyText, download } from './download.ts';
import { type ExportedRange, exportedRange, fileName } from './exported-range.ts';
import { machinesWithin, minimalTrace } from './minimal-trace.ts';
import { pageFile } from './page-file.ts';
import { pngOf, type StandaloneSvg, standalone } from './picture.ts';
import { rangeMermaid } from './range-mermaid.ts';
import { rangeTest, testErrorText } from './range-test.ts';
import { partInformationOf, relevantPart } from './relevant-part.ts';
import { maxPictureRows, type Palette, rowsWithin, sequenceSvg } from './sequence-svg.ts';

export interface ExportCommand {
  readonly name: string;
  readonly group: 'Sequence' | 'Chart' | 'Trace';
  /** Runs the command; returns a message for the user. */
  run(open: PageRecording, exported: ExportedRange): Promise<string> | string;
  /** Returns why the command is unavailable; `undefined` if it is available. */
  unavailableReason?(open: PageRecording, exported: ExportedRange): string | undefined;
}

export const exportCommands: readonly ExportCommand[] = [
  {
    name: 'Copy as Mermaid',
    group: 'Sequence',
    run: async (openRecording, exported) => {
      await copyText(rangeMermaid(openRecording, exported));
      return 'Copied the sequence diagram.';
    },
  },
  {
    name: 'Download as Mermaid',
    group: 'Sequence',
    run: (openRecording, exported) =>
      save(fileName(openRecording, exported, '.mmd'), rangeMermaid(openRecording, exported)),
  },
  {
    name: 'Download as SVG',
    group: 'Sequence',
    unavailableReason: sequenceErrorText,
    run: (openRecording, exported) =>
      save(fileName(openRecording, exported, '.svg'), drawnSequence(exported).text, svgType),
  },
  {
    name: 'Download as PNG',
    group: 'Sequence',
    unavailableReason: sequenceErrorText,
    run: async (openRecording, exported) =>
      save(fileName(openRecording, exported, '.png'), await pngOf(drawnSequence(exported))),
  },
  {
    name: 'Download as SVG',
    group: 'Chart',
    unavailableReason: chartErrorText,
    run: () => save(`${shownMachine()}.svg`, standalone(shownChart()!).text, svgType),
  },
  {
    name: 'Download as PNG',
    group: 'Chart',
    unavailableReason: chartErrorText,
    run: async () => save(`${shownMachine()}.png`, await pngOf(standalone(shownChart()!))),
  },
  {
    name: 'Download as trace',
    group: 'Trace',
    run: (openRecording, exported) =>
      save(fileName(openRecording, exported, '.trace'), minimalTrace(openRecording, exported), 'application/x-ndjson'),
  },
  {
    name: 'Download as HTML page',
    group: 'Trace',
    run: async (openRecording, exported) => {
      const exportedPart =
        range.value === undefined ? relevantPart(openRecording, place.value, findingsOfTrace()) : exported;
      const name = fileName(openRecording, exportedPart, '.html');
      const file = await pageFile({
        name: fileName(openRecording, exportedPart, '.trace'),
        trace: minimalTrace(openRecording, exportedPart),
        session: sessionOfPart(openRecording, exportedPart),
        address: currentAddress(),
      });
      return save(name, file);
    },
  },
  {
    name: 'Copy as test',
    group: 'Trace',
    unavailableReason: testErrorText,
    run: async (openRecording, exported) => {
      const { source, trace } = rangeTest(openRecording, exported);
      await copyText(source);
      if (trace === undefined) return 'Copied the test.';
      download(trace.name, trace.text);
      return `Copied the test. Save ${trace.name} in the same directory.`;
    },
  },
  {
    name: 'Download as test',
    group: 'Trace',
    unavailableReason: testErrorText,
    run: (openRecording, exported) => {
      const { source, trace } = rangeTest(openRecording, exported);
      if (trace !== undefined) download(trace.name, trace.text);
      return save(fileName(openRecording, exported, '.test.ts'), source);
    },
  },
];

const svgType = 'image/svg+xml';

/** Deviations of the complete trace, because each concerns only its own record. */
function findingsOfTrace(): Finding[] {
  return findings.value.filter(({ rule }) => rule !== deviationsRule);
}

/** The session, with only the pictures of machines that occur in the part. */
function sessionOfPart(openRecording: PageRecording, part: ExportedRange): Session {
  const { charts = {}, briefCharts = {}, notDrawn, diagrams = [], part: previousPart } = session.value ?? {};
  const partInformation = partInformationOf(openRecording, part, findings.value, previousPart);
  const ids = new Set(machinesWithin(openRecording, part).map(({ id }) => id));
  const picturesInPart = <Picture>(all: Readonly<Record<string, Picture>>): Readonly<Record<string, Picture>> =>
    Object.fromEntries(Object.entries(all).filter(([id]) => ids.has(id)));
  return {
    charts: picturesInPart(charts),
    briefCharts: picturesInPart(briefCharts),
    ...(notDrawn !== undefined && { notDrawn: picturesInPart(notDrawn) }),
    diagrams,
    ...(partInformation !== undefined && { part: partInformation }),
  };
}

export function currentRange(): { open: PageRecording; exported: ExportedRange } | undefined {
  const openRecording = recording.value;
  const exported = openRecording === undefined ? undefined : exportedRange(openRecording, range.value);
  return openRecording === undefined || exported === undefined ? undefined : { open: openRecording, exported };
}

function save(name: string, content: Blob | string, type?: string): string {
  download(name, content, type);
  return `Downloading ${name}.`;
}

function drawnSequence(exported: ExportedRange): StandaloneSvg {
  return sequenceSvg(shownRows.peek()!.rows, shownColumns.peek(), exported, paletteOf(document.documentElement));
}

function sequenceErrorText(_: PageRecording, exported: ExportedRange): string | undefined {
  const rows = shownRows.peek()?.rows;
  if (rows === undefined) return 'No messages are shown.';
  const { from, end } = rowsWithin(rows, exported);
  if (end - from === 0) return 'The filter hides all messages of this range.';
  if (end - from <= maxPictureRows) return undefined;
  return `An image has at most ${maxPictureRows} rows, this range has ${end - from}. Select a shorter range on the timeline.`;
}

function chartErrorText(): string | undefined {
  return shownChart() === undefined ? 'No single statechart is shown.' : undefined;
}

function shownChart(): SVGSVGElement | undefined {
  return document.querySelector<SVGSVGElement>('.chart-viewport > svg') ?? undefined;
}

function shownMachine(): string {
  return shownChart()?.dataset.machine ?? 'chart';
}

function paletteOf(element: HTMLElement): Palette {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  return {
    paper: colour('--pane'),
    ink: colour('--ink'),
    muted: colour('--muted'),
    line: colour('--chart-line'),
    box: colour('--chart-box'),
    active: colour('--chart-active'),
    activeInk: colour('--chart-active-ink'),
    bad: colour('--bad'),
  };
}
