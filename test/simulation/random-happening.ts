/** Applies a step of a schedule to a simulation. */

import type { SimulatedProcess } from '../../src/simulation/agent/simulated-host.ts';
import type { Gap, ProcessSelection, ScheduledEvent, Step } from './random-schedule.ts';
import type { RandomWorld } from './random-world.ts';

export function takeStep({ gap, scheduledEvent }: Step, world: RandomWorld): void {
  waitFor(gap, world);
  if (!world.isOver) world.runAction(() => applyEvent(scheduledEvent, world));
}

function waitFor(gap: Gap, world: RandomWorld): void {
  if ('ms' in gap) world.passTime(gap.ms);
  else for (let i = 0; i < gap.events && !world.isOver && world.next(); i++);
}

function applyEvent(happening: ScheduledEvent, world: RandomWorld): void {
  const { ledger, host } = world;
  switch (happening.kind) {
    case 'certificate':
      world.changeFiles('fine');
      break;
    case 'certificate reverted':
      world.changeFiles('as before');
      break;
    case 'certificate half written':
      world.changeFiles('half written');
      break;
    case 'certificate missing':
      world.changeFiles('missing');
      break;
    case 'SIGHUP':
      ledger.demandRestart();
      world.deliverSignal('SIGHUP');
      break;
    case 'SIGUSR1':
      world.deliverSignal('SIGUSR1');
      break;
    case 'SIGTERM':
    case 'SIGINT':
      ledger.orderStop();
      world.deliverSignal(happening.kind);
      break;
    case 'quit':
      endByHttp({ type: 'quit.requested' }, world);
      break;
    case 'status server broken':
      endByHttp({ type: 'http.failed', reason: 'EBADF' }, world);
      break;
    case 'ready?':
      world.http({ type: 'readiness.requested', request: 1 });
      break;
    case 'crash':
    case 'oom':
      for (const process of selectProcesses(happening.target, world)) kill(process, happening.kind, world);
      break;
    case 'slow start':
      world.slowerMs = happening.ms;
      break;
    case 'bootstrap refused':
      world.pendingRefusals++;
      break;
    case 'stuck':
      for (const { isLive, baseId, epoch } of host.processes.slice(-1)) if (isLive) host.leaveMark(baseId, epoch + 1);
      break;
    case 'pace':
      world.pacedClock.setPace(100 / happening.percent);
      break;
    default:
      world.beginFault(happening.kind, happening.forMs);
  }
}

/** A request does not accelerate an agent that is already stopping. */
function endByHttp(event: { type: string; reason?: string }, world: RandomWorld): void {
  if (!world.hasHttp) return;
  if (world.ledger.stop === 'not ordered') world.ledger.orderStop();
  world.http(event);
}

function kill(process: SimulatedProcess, cause: 'crash' | 'oom', { host }: RandomWorld): void {
  // To the agent, a parent killed during an ordered exit looks like a crashed one.
  if (process.exitRequested && process.isChildSeenLive) return;
  if (cause === 'crash') {
    host.sendEvent(process, 'envoy.crashed');
    return;
  }
  // The kernel sends it immediately, without an event of the agent.
  process.envoy.send({ type: 'signal.sent', signal: 'SIGKILL' });
  process.envoy.send({ type: 'envoy.ended' });
}

function selectProcesses(selection: ProcessSelection, { host }: RandomWorld): readonly SimulatedProcess[] {
  const { processes } = host;
  switch (selection) {
    case 'newest':
      return processes.slice(-1);
    case 'oldest':
      return processes.slice(0, 1);
    case 'serving':
      return processes.filter((process) => host.isServing(process)).slice(-1);
    case 'starting':
      return processes.filter(({ isLive }) => !isLive).slice(-1);
  }
}
