#!/usr/bin/env node
// Entry point of the image, of the systemd unit and of `npm start`: the command, which without arguments is `serve`.
import './cli/main.js';
