import type { JSX } from 'preact';
import type { Deviation } from '../../src/debugger/check/check.ts';
import { textWidth } from '../../src/debugger/statechart/text-width.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { goTo, range } from '../model/place.ts';
import { clockText } from '../model/recording/words.ts';
import { contractPlaces } from './sequence-current.ts';
import {
  type DrawnEntry,
  drawnEntryOf,
  hasLifeline,
  type Layout,
  labelAt,
  labelBesideLoop,
  labelFont,
  noteFont,
  noteLeftX,
  noteWidth,
  px,
  rowHeight,
  rowTop,
  xOf,
} from './sequence-layout.ts';
import type { Columns } from './sequence-lifelines.ts';
import {
  deviationLineText,
  deviationLineTexts,
  deviationOfLine,
  type Entry,
  type SequenceRows,
} from './sequence-rows.ts';
import { actorPrefixOf, labelOf, payloadOf, sentenceOf, typeOf } from './sequence-text.ts';

interface SequenceRowProps {
  rowNumber: number;
  base: number;
  rows: SequenceRows;
  columns: Columns;
  layout: Layout;
  /** `near`: the record at the current place has no row, and this is the last row before it. */
  currentMark: 'here' | 'near' | undefined;
  isInShownChain: boolean;
}

export function SequenceRow({
  rowNumber,
  base,
  rows,
  columns,
  layout,
  currentMark,
  isInShownChain,
}: SequenceRowProps): JSX.Element {
  const { entry, line } = rows.row(rowNumber);
  const { recording } = rows.index;
  const record = recording.recordAt(entry.index)!;
  const deviations = recording.deviationsAt(entry.index);
  const style = { top: px(rowTop(rowNumber, base)), height: px(rowHeight) };
  if (line > 0) {
    const lineDeviation = deviationOfLine(deviations, line);
    return (
      <div class="sequence-expected" style={style} aria-hidden="true" onClick={() => goTo(entry.index)}>
        {lineDeviation !== undefined && deviationLineText(lineDeviation.deviation, lineDeviation.lineIndex)}
      </div>
    );
  }
  const classes = [
    'sequence-row',
    entry.kind,
    currentMark ?? '',
    isInShownChain ? 'story' : '',
    deviations.length > 0 ? 'departure' : '',
    isOutsideEntry(entry) ? 'outside' : '',
  ];
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list box has the keys
    <div
      class={classes.filter(Boolean).join(' ')}
      id={`sequence-row-${rowNumber}`}
      data-record={record.seq}
      style={style}
      role="option"
      tabIndex={-1}
      aria-selected={currentMark === 'here'}
      aria-posinset={rowNumber + 1}
      aria-setsize={-1}
      aria-label={accessibleText(entry, record, deviations, actorPrefixOf(entry, columns))}
      title={completePayload(entry, record)}
      onClick={() => goTo(entry.index)}
    >
      <Arrow
        entry={entry}
        record={record}
        drawnEntry={drawnEntryOf(entry, columns, layout)}
        columns={columns}
        layout={layout}
      />
      {layout.hasNotes && <MessagePlace entry={entry} record={record} rows={rows} />}
    </div>
  );
}

/** Horizontal scrolling does not move this part of the row. */
export function SequenceStamp({
  rowNumber,
  base,
  rows,
  currentMark,
  isInShownChain,
}: Pick<SequenceRowProps, 'rowNumber' | 'base' | 'rows' | 'currentMark' | 'isInShownChain'>): JSX.Element | null {
  const { entry, line } = rows.row(rowNumber);
  if (line > 0) return null;
  const { recording } = rows.index;
  const record = recording.recordAt(entry.index)!;
  const hasDeviation = recording.deviationsAt(entry.index).length > 0;
  const classes = ['sequence-stamp', currentMark ?? '', isInShownChain ? 'story' : '', hasDeviation ? 'departs' : ''];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a part of the row, which has the role
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list box has the keys
    <div
      class={classes.filter(Boolean).join(' ')}
      style={{ top: px(rowTop(rowNumber, base)), height: px(rowHeight) }}
      onClick={() => goTo(entry.index)}
    >
      {hasDeviation && <span class="sequence-alarm">⚠</span>}
      <span class="sequence-seq">{record.seq}</span>
      <span class="sequence-time" title={clockText(record.t)}>
        {clockText(record.t)}
      </span>
    </div>
  );
}

/** A shorter arrow to a spawned actor's box has no space for a label. */
const shortArrow = 130;

interface ArrowProps {
  entry: Entry;
  record: TraceRecord;
  drawnEntry: DrawnEntry | undefined;
  columns: Columns;
  layout: Layout;
}

function Arrow({ entry, record, drawnEntry: form, columns, layout }: ArrowProps): JSX.Element | null {
  if (form === undefined) return null;
  const label = labelOf(entry, record);
  const actorPrefix = actorPrefixOf(entry, columns);
  if (form.form === 'note') {
    return (
      <StickyLabel
        labelX={noteLeftX(form.x, actorPrefix + label, layout)}
        labelWidth={noteWidth(actorPrefix + label)}
        arrowEnds={[form.x, form.x]}
        actorPrefix={arrowActorsText(entry, form.form, columns)}
      >
        <span
          class="sequence-note"
          data-whose={arrowActorsText(entry, form.form, columns)}
          style={{ '--least': px(noteWidth(actorPrefix + label)) }}
        >
          {actorPrefix + label}
        </span>
      </StickyLabel>
    );
  }
  // An actor without a spawning actor has a box but no arrow.
  if (form.form === 'self' && entry.kind === 'spawn' && hasLifeline(columns, entry.to)) {
    return <LifelineEnds entry={entry} columns={columns} layout={layout} />;
  }
  const isSpawned = entry.kind === 'spawn' && hasLifeline(columns, entry.to);
  const payload = isSpawned ? '' : payloadOf(record);
  const labelWidth = textWidth(actorPrefix, noteFont) + textWidth(label, labelFont) + textWidth(payload, noteFont) + 16;
  const labelBox =
    form.form === 'self' ? labelBesideLoop(form.x, labelWidth, layout) : labelAt(form.x + 8, labelWidth, layout);
  const text = (
    <StickyLabel
      labelX={labelBox.left}
      labelWidth={labelWidth}
      maxWidth={labelBox.maxWidth}
      isStill={isSpawned}
      arrowEnds={[form.x, form.x + lengthOf(form)]}
      actorPrefix={arrowActorsText(entry, form.form, columns)}
    >
      <span class="sequence-text" data-whose={arrowActorsText(entry, form.form, columns)}>
        <span class="sequence-effect">{actorPrefix}</span>
        <span class="sequence-label">{label}</span> <span class="sequence-payload">{payload}</span>
      </span>
    </StickyLabel>
  );
  const arrow =
    form.form !== 'arrow' ? (
      <svg class="sequence-loop" style={{ left: px(form.x) }} width="26" height={rowHeight} aria-hidden="true">
        <path d="M1 7H18Q23 7 23 13T18 19H8" />
        <path class="head" d="M1.5 19L9 15.5V22.5Z" />
      </svg>
    ) : (
      <span class={`sequence-arrow ${form.towards}`} style={{ left: px(form.x), width: px(form.length) }} />
    );
  return (
    <>
      {arrow}
      {isSpawned && form.form === 'arrow' && form.length < shortArrow ? null : text}
      <LifelineEnds entry={entry} columns={columns} layout={layout} />
    </>
  );
}

/** Such as `supervisor: ` or `agent → supervisor: `. Labels of effects contain the names already. */
function arrowActorsText({ fromActor, toActor, from }: Entry, form: DrawnEntry['form'], columns: Columns): string {
  if (form === 'arrow') return `${fromActor} → ${toActor}: `;
  return `${hasLifeline(columns, from) ? fromActor : toActor}: `;
}

function lengthOf(form: DrawnEntry): number {
  return form.form === 'arrow' ? form.length : form.form === 'self' ? 26 : 0;
}

interface StickyLabelProps {
  readonly labelX: number;
  readonly labelWidth: number;
  readonly maxWidth?: number;
  readonly isStill?: boolean;
  /** In pixels; equal for an arrow to its own lifeline. */
  readonly arrowEnds: readonly [number, number];
  /** For an arrow that is out of view; empty if the label contains the name. */
  readonly actorPrefix?: string;
  readonly children: JSX.Element;
}

/** The label stays in the visible part while the view scrolls horizontally. */
function StickyLabel({
  labelX,
  labelWidth,
  maxWidth,
  isStill = false,
  arrowEnds: [first, last],
  actorPrefix = '',
  children,
}: StickyLabelProps): JSX.Element {
  return (
    <span
      class={isStill ? 'sequence-kept still' : 'sequence-kept'}
      style={{
        ...{
          '--at': px(labelX),
          '--wide': px(labelWidth),
          '--first': px(first),
          '--last': px(last),
          '--whose-wide': actorPrefix === '' ? 0 : Math.ceil(textWidth(actorPrefix, noteFont)) + 2,
        },
        ...(maxWidth !== undefined && { '--most': px(maxWidth) }),
      }}
    >
      {children}
    </span>
  );
}

/** A box at the spawn of an actor, a cross at its end. */
function LifelineEnds({ entry, columns, layout }: Omit<ArrowProps, 'record' | 'drawnEntry'>): JSX.Element | null {
  const { kind, fromActor, toActor } = entry;
  const lifeline = kind === 'spawn' ? entry.to : entry.from;
  if ((kind !== 'spawn' && kind !== 'done' && kind !== 'ended') || !hasLifeline(columns, lifeline)) return null;
  const x = xOf(columns.columnIndexOf(lifeline)!, layout);
  return kind === 'spawn' ? (
    <StickyLabel labelX={noteLeftX(x, `${toActor} `, layout)} labelWidth={noteWidth(`${toActor} `)} arrowEnds={[x, x]}>
      <span class="sequence-born" data-whose="" style={{ '--least': px(noteWidth(`${toActor} `)) }}>
        {toActor}
      </span>
    </StickyLabel>
  ) : (
    <span class="sequence-end" style={{ left: px(x) }} title={`${fromActor} ends`}>
      ✕
    </span>
  );
}

function MessagePlace({
  entry,
  record,
  rows,
}: Pick<ArrowProps, 'entry' | 'record'> & { rows: SequenceRows }): JSX.Element | null {
  const type = typeOf(entry, record);
  if (type === undefined) return null;
  const messagePlaces = contractPlaces(rows.index.recording).placesFor({
    from: entry.fromActor,
    to: entry.toActor,
    type,
  });
  if (messagePlaces.length === 0) return null;
  const [firstPlace] = messagePlaces;
  const placesText = messagePlaces.map(({ file, line }) => `${file}:${line}`).join('\n');
  return (
    <span class="sequence-place" title={`In sequence diagrams:\n${placesText}`}>
      {firstPlace!.file.slice(firstPlace!.file.lastIndexOf('/') + 1)}:{firstPlace!.line}
      {messagePlaces.length > 1 && ` +${messagePlaces.length - 1}`}
    </span>
  );
}

function accessibleText(
  entry: Entry,
  record: TraceRecord,
  deviations: readonly Deviation[],
  actorPrefix: string,
): string {
  const deviationTexts = deviations.map(
    (deviation) => `deviates from a sequence diagram: ${deviationLineTexts(deviation).join(', ')}`,
  );
  return [...deviationTexts, sentenceOf(entry, record, actorPrefix)].join('; ');
}

function completePayload(entry: Entry, record: TraceRecord): string {
  return entry.kind === 'state' && record.kind === 'transition'
    ? `${record.from || '—'} → ${record.to}`
    : sentenceOf(entry, record, '', maxTooltipChars);
}

const maxTooltipChars = 4_000;

function isOutsideEntry({ index }: Entry): boolean {
  const chosenRange = range.value;
  return chosenRange !== undefined && (index < chosenRange[0] || index > chosenRange[1]);
}
