import { batch, effect, signal } from '@preact/signals';
import { connection } from './connection.ts';
import { elapsedMs, followsEnd, goTo, place, recording, size } from './place.ts';
import { nextPosition } from './time/player.ts';
import { programTime } from './time/program-clock.ts';

export const isPlaying = signal(false);
export const playbackSpeed = signal(1);

/** A shorter interval would make no visible difference and use more CPU. */
const followTickMs = 200;

export function togglePlaying(): void {
  const lastIndex = (recording.value?.length ?? 0) - 1;
  batch(() => {
    if (!isPlaying.value && place.value >= lastIndex) goTo(-1);
    isPlaying.value = !isPlaying.value;
  });
}

export function runClock(): void {
  effect(() => {
    if (isPlaying.value) play();
  });
  effect(() => {
    if (followsEnd.value && connection.value.kind === 'live' && size.value > 0) return advanceElapsedTime();
    return undefined;
  });
}

function play(): void {
  let shownMs = 0;
  let drawnAt = performance.now();
  let expectedPlace = place.peek();
  const frame = (frameMs: number): void => {
    const openRecording = recording.peek();
    if (openRecording === undefined) isPlaying.value = false;
    if (!isPlaying.peek() || openRecording === undefined) return;
    // The user moved to another place; playback continues there.
    if (place.peek() !== expectedPlace) shownMs = 0;
    shownMs += Math.max(0, frameMs - drawnAt);
    drawnAt = frameMs;
    const lastIndex = openRecording.length - 1;
    const position = nextPosition(
      (index) => openRecording.timeAt(index),
      lastIndex,
      { index: place.peek(), shownMs },
      playbackSpeed.peek(),
    );
    shownMs = position.shownMs;
    expectedPlace = position.index;
    batch(() => {
      if (position.index !== place.peek()) goTo(position.index);
      elapsedMs.value = position.elapsed;
      if (position.index >= lastIndex) isPlaying.value = false;
    });
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** A page that is opened later shows the age of the last record. */
function advanceElapsedTime(): () => void {
  const timer = setInterval(() => {
    const placeTime = recording.peek()?.timeAt(place.peek()) ?? 0;
    elapsedMs.value = Math.max(0, (programTime() ?? placeTime) - placeTime);
  }, followTickMs);
  return () => clearInterval(timer);
}
