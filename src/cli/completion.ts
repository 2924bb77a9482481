// `completion`: a script for a shell that completes the commands and their options.
import type { Command } from 'commander';
import { bashScript } from './completion-bash.js';
import { fishScript } from './completion-fish.js';
import { type ProgramShape, shapeOf } from './completion-shape.js';
import { zshScript } from './completion-zsh.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const SCRIPTS: Record<Shell, (program: ProgramShape) => string> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export const completionScript = (program: Command, shell: Shell): string => SCRIPTS[shell](shapeOf(program));
