import type { JSX } from 'preact';
import { textWidth } from '../../src/debugger/statechart/text-width.ts';
import { recording } from '../model/place.ts';
import { durationText, wallClockText } from '../model/recording/words.ts';
import { areAllFolded, axis, hasIdle, openFold, toggleIdle } from './timeline-view.ts';

export function Folds(): JSX.Element {
  const startedAt = recording.value?.header.startedAt ?? '';
  return (
    <>
      {axis.value.folds.map(({ from, to, x, width }) => {
        const lengthText = durationText(to - from);
        return (
          <div key={from} class="idle" data-idle={from} style={{ left: `${x}px`, width: `${width}px` }}>
            <button
              type="button"
              title={`No changes for ${lengthText}, from ${wallClockText(startedAt, from)} to ${wallClockText(startedAt, to)}. Click to expand`}
              aria-label={`No changes for ${lengthText}: expand`}
              onPointerDown={(event) => event.stopPropagation()}
              onClick={() => openFold(from)}
            >
              {[lengthText, shortDuration(to - from)].find((label) => textWidth(label, { size: 10 }) + 4 <= width) ??
                ''}
            </button>
          </div>
        );
      })}
    </>
  );
}

/** Returns text such as `12 h` or `3 d`, for narrow folds. */
function shortDuration(ms: number): string {
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 36 * 3_600_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`;
}

export function IdleSwitch(): JSX.Element | null {
  if (!hasIdle.value) return null;
  return (
    <button
      type="button"
      class="idle-switch"
      aria-pressed={areAllFolded.value}
      title="Shorten periods without changes"
      onClick={toggleIdle}
    >
      Collapse idle time
    </button>
  );
}
