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
import { pngOf, type StandaloneSvg, standaloneSvg } from './picture.ts';
import { rangeMermaid } from './range-mermaid.ts';
import { rangeTest, testErrorText } from './range-test.ts';
import { partInformationOf, relevantPart } from './relevant-part.ts';
import { maxPictureRows, type Palette, rowsWithin, sequenceSvg } from './sequence-svg.ts';

export interface ExportCommand {
  readonly name: string;
  readonly group: 'Sequence' | 'Chart' | 'Trace';
  /** Returns a message for the user. */
  run(openRecording: PageRecording, exported: ExportedRange): Promise<string> | string;
  unavailableReason?(openRecording: PageRecording, exported: ExportedRange): string | undefined;
}

export const exportCommands: readonly ExportCommand[] = [
  {
    name: 'Copy as Mermaid',
    group: 'Sequence',
    run: async (openRecording, exportRange) => {
      await copyText(rangeMermaid(openRecording, exportRange));
      return 'Copied the sequence diagram.';
    },
  },
  {
    name: 'Download as Mermaid',
    group: 'Sequence',
    run: (openRecording, exportRange) =>
      save(fileName(openRecording, exportRange, '.mmd'), rangeMermaid(openRecording, exportRange)),
  },
  {
    name: 'Download as SVG',
    group: 'Sequence',
    unavailableReason: sequenceErrorText,
    run: (openRecording, exportRange) =>
      save(fileName(openRecording, exportRange, '.svg'), drawnSequence(exportRange).text, svgType),
  },
  {
    name: 'Download as PNG',
    group: 'Sequence',
    unavailableReason: sequenceErrorText,
    run: async (openRecording, exportRange) =>
      save(fileName(openRecording, exportRange, '.png'), await pngOf(drawnSequence(exportRange))),
  },
  {
    name: 'Download as SVG',
    group: 'Chart',
    unavailableReason: chartErrorText,
    run: () => save(`${shownMachine()}.svg`, standaloneSvg(shownChart()!).text, svgType),
  },
  {
    name: 'Download as PNG',
    group: 'Chart',
    unavailableReason: chartErrorText,
    run: async () => save(`${shownMachine()}.png`, await pngOf(standaloneSvg(shownChart()!))),
  },
  {
    name: 'Download as trace',
    group: 'Trace',
    run: (openRecording, exportRange) =>
      save(
        fileName(openRecording, exportRange, '.trace'),
        minimalTrace(openRecording, exportRange),
        'application/x-ndjson',
      ),
  },
  {
    name: 'Download as HTML page',
    group: 'Trace',
    run: async (openRecording, exportRange) => {
      const exportedPart =
        range.value === undefined ? relevantPart(openRecording, place.value, findingsOfTrace()) : exportRange;
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
    run: async (openRecording, exportRange) => {
      const { source, trace } = rangeTest(openRecording, exportRange);
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
    run: (openRecording, exportRange) => {
      const { source, trace } = rangeTest(openRecording, exportRange);
      if (trace !== undefined) download(trace.name, trace.text);
      return save(fileName(openRecording, exportRange, '.test.ts'), source);
    },
  },
];

const svgType = 'image/svg+xml';

/** Excludes the finding of deviations, because each deviation concerns only its own record. */
function findingsOfTrace(): Finding[] {
  return findings.value.filter(({ rule }) => rule !== deviationsRule);
}

function sessionOfPart(openRecording: PageRecording, exportRange: ExportedRange): Session {
  const { charts = {}, briefCharts = {}, notDrawn, diagrams = [], part: previousPart } = session.value ?? {};
  const partInformation = partInformationOf(openRecording, exportRange, findings.value, previousPart);
  const ids = new Set(machinesWithin(openRecording, exportRange).map(({ id }) => id));
  const picturesInPart = <Picture>(pictures: Readonly<Record<string, Picture>>): Readonly<Record<string, Picture>> =>
    Object.fromEntries(Object.entries(pictures).filter(([id]) => ids.has(id)));
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
  const exportRange = openRecording === undefined ? undefined : exportedRange(openRecording, range.value);
  return openRecording === undefined || exportRange === undefined
    ? undefined
    : { open: openRecording, exported: exportRange };
}

function save(name: string, content: Blob | string, type?: string): string {
  download(name, content, type);
  return `Downloading ${name}.`;
}

function drawnSequence(exportRange: ExportedRange): StandaloneSvg {
  return sequenceSvg(shownRows.peek()!.rows, shownColumns.peek(), exportRange, paletteOf(document.documentElement));
}

function sequenceErrorText(_: PageRecording, exportRange: ExportedRange): string | undefined {
  const sequenceRows = shownRows.peek()?.rows;
  if (sequenceRows === undefined) return 'No messages are shown.';
  const { from, end } = rowsWithin(sequenceRows, exportRange);
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
    failureColor: colour('--bad'),
  };
}
