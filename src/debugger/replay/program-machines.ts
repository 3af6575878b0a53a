import type { AnyStateMachine } from 'xstate';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { discoveryProgramMachines } from '../../../machines/discovery/program-machines.ts';

const roots: Readonly<Record<string, readonly AnyStateMachine[]>> = {
  'pilot-agent': [agentMachine],
  'pilot-discovery': discoveryProgramMachines,
};

/** Empty for programs of other packages. */
export function machinesOfProgram(program: string): readonly AnyStateMachine[] {
  return Object.hasOwn(roots, program) ? roots[program]! : [];
}
