#!/usr/bin/env node
// Entry point for the image, the systemd unit and `npm start`: runs the command, by default `serve`.
import './cli/main.js';
