import { render } from 'preact';
import { messageOf } from '../src/runtime/errors.ts';
import { startDetails } from './details/details.tsx';
import { parseAddress } from './model/address.ts';
import { startChain } from './model/causal-chain.ts';
import { connection, sources } from './model/connection.ts';
import { waitUntilIdle } from './model/idle.ts';
import { startAddress } from './model/link.ts';
import { openDurationMs, openSource } from './model/load.ts';
import { place, recording } from './model/place.ts';
import { runClock } from './model/playing.ts';
import { AccessDenied, addressInside, loadSources, rememberPath } from './model/source-data.ts';
import { drawnRecords } from './model/time/frames.ts';
import { closeSearchOutside, startSearching } from './search/searching.ts';
import { startOpeningDroppedFiles } from './shell/drop-zone.tsx';
import { onKey } from './shell/keys.ts';
import { Shell, startAnnouncing, startTitle } from './shell/shell.tsx';
import { startTheme } from './shell/theme.tsx';
import { escapeDrawnText } from './shell/visible-nodes.ts';
import { startGrowing, startKeepingPlaceInView } from './timeline/timeline-view.ts';

/** For tests and measurements. */
const hooks = {
  recording: () => recording.value,
  place: () => place.value,
  drawn: drawnRecords,
  idle: waitUntilIdle,
  get opened() {
    return openDurationMs;
  },
};

async function startPage(): Promise<void> {
  Object.assign(globalThis, { chartpilot: hooks });
  escapeDrawnText();
  startTheme();
  runClock();
  startKeepingPlaceInView();
  startGrowing();
  startDetails();
  startChain();
  startSearching();
  startAnnouncing();
  startTitle();
  startOpeningDroppedFiles();
  document.addEventListener('keydown', onKey);
  document.addEventListener('pointerdown', closeSearchOutside);
  render(<Shell />, document.getElementById('page') ?? document.body);
  rememberPath();
  const address = parseAddress(location.hash.length > 1 ? location.hash : addressInside());
  try {
    sources.value = await loadSources();
  } catch (error) {
    const reason = messageOf(error);
    connection.value = {
      kind: 'failed',
      reason:
        error instanceof AccessDenied
          ? reason
          : `The server of this page does not respond: ${reason}. Check that chartpilot visualize is still running.`,
    };
    return;
  }
  startAddress();
  await openSource(address.source ?? 0, address);
}

void startPage();
