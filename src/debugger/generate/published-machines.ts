/** Generated tests of chartpilot's machines import these from an installed package. */
import type { AnyStateMachine } from 'xstate';
import * as agent from '../../../machines/agent/agent.machine.ts';
import * as epoch from '../../../machines/agent/envoy/epoch.machine.ts';
import * as restart from '../../../machines/agent/envoy/restart.machine.ts';
import * as shutdown from '../../../machines/agent/envoy/shutdown.machine.ts';
import * as startLimiter from '../../../machines/agent/envoy/start-limiter.machine.ts';
import * as supervisor from '../../../machines/agent/envoy/supervisor.machine.ts';
import * as certWatcher from '../../../machines/agent/files/cert-watcher.machine.ts';
import * as directoryWatch from '../../../machines/agent/files/directory-watch.machine.ts';
import * as status from '../../../machines/agent/status/status.machine.ts';

// Declared without their specific types, which would become part of the public API.
export const agentMachine: AnyStateMachine = agent.agentMachine;
export const supervisorMachine: AnyStateMachine = supervisor.supervisorMachine;
export const restartMachine: AnyStateMachine = restart.restartMachine;
export const shutdownMachine: AnyStateMachine = shutdown.shutdownMachine;
export const epochMachine: AnyStateMachine = epoch.epochMachine;
export const certWatcherMachine: AnyStateMachine = certWatcher.certWatcherMachine;
export const directoryWatchMachine: AnyStateMachine = directoryWatch.directoryWatchMachine;
export const startLimiterMachine: AnyStateMachine = startLimiter.startLimiterMachine;
export const statusMachine: AnyStateMachine = status.statusMachine;
