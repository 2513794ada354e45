// The plugin compiles JSX; everything else is Vite's own.
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({ plugins: [react()], base: './' });
